import type { CompressionJob } from "../../../src/contract/compression-job.ts";
import type { Target } from "../../../src/contract/target.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import type { WorkerJob } from "./worker-job.ts";
import type { WorkerSettings } from "./worker-job-manifest.ts";
import type { StepWarning } from "./step-warning.ts";
import type { WorkerPod } from "./worker-pod.ts";

export interface JobSettings extends WorkerSettings {
  /** Of jobs that name none. */
  readonly deadlineSeconds: number;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}

/** Why the API server refused a Job when it was to be made. */
export interface WorkerJobRejection {
  readonly message: string;
  /** It would refuse the same Job again. */
  readonly final: boolean;
}

/** All that a decision about a CompressionJob depends on. */
export interface ObservedState {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly resource: CompressionJob;
  /** Jobs with the job's id, and one that was found to have the name of a child. */
  readonly workerJobs: readonly WorkerJob[];
  /** Pods with the job's id. */
  readonly pods: readonly WorkerPod[];
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
  readonly workerJobRejection?: WorkerJobRejection;
  /** What the cluster warns of about pods that are not made or not started. */
  readonly stepWarning: StepWarning | undefined;
}

export function ownedWorkerJobs({
  resource,
  workerJobs,
}: Pick<ObservedState, "resource" | "workerJobs">): readonly WorkerJob[] {
  return workerJobs.filter((workerJob) => isOwnedWorkerJob(workerJob, resource));
}

/** Whether the Job is the resource's own: by its uid, or one that lost its owner and still carries the job's id. */
export function isOwnedWorkerJob(
  { controller, jobId }: WorkerJob,
  resource: CompressionJob,
): boolean {
  return controller === undefined
    ? jobId === resolveJobId(resource)
    : controller.uid === resource.metadata.uid;
}
