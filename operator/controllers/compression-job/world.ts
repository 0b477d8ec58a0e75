import type { CompressionJob } from "../../../src/contract/custom-resources.ts";
import type { Target } from "../../../src/contract/target.ts";
import { jobIdOf } from "../../../src/kubernetes/job-identity.ts";
import type { ChildJob } from "./child-job.ts";
import type { WorkerSettings } from "./job-manifest.ts";
import type { Trouble } from "./trouble.ts";
import type { WorkerPod } from "./worker-pod.ts";

export interface JobSettings extends WorkerSettings {
  /** Of jobs that name none. */
  readonly deadlineSeconds: number;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}

/** Why the API server refused a Job when it was to be made. */
export interface JobRefusal {
  readonly message: string;
  /** It would refuse the same Job again. */
  readonly final: boolean;
}

/** All that a decision about a CompressionJob depends on. */
export interface World {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly resource: CompressionJob;
  /** Jobs with the job's id, and one that was found to have the name of a child. */
  readonly jobs: readonly ChildJob[];
  /** Pods with the job's id. */
  readonly pods: readonly WorkerPod[];
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
  readonly jobRefusal?: JobRefusal;
  /** What the cluster warns of about pods that are not made or not started. */
  readonly trouble: Trouble | undefined;
}

export function childrenOf({ resource, jobs }: Pick<World, "resource" | "jobs">): readonly ChildJob[] {
  return jobs.filter((job) => isChild(job, resource));
}

/** Whether the Job is the resource's own: by its uid, or one that lost its owner and still carries the job's id. */
export function isChild({ controller, jobId }: ChildJob, resource: CompressionJob): boolean {
  return controller === undefined ? jobId === jobIdOf(resource) : controller.uid === resource.metadata.uid;
}
