import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import type { JobSettings } from "./job-settings.ts";
import type { JobCosts } from "../../../../src/contract/jobs/telemetry.ts";
import type { StepWarning } from "./step-warning.ts";
import type { WorkerJob } from "./worker-job.ts";
import type { WorkerPod } from "./worker-pod.ts";

/** Why the API server rejected a worker Job. */
interface WorkerJobRejection {
  readonly message: string;
  /** Whether it would reject the same worker Job again. */
  readonly final: boolean;
}

/** All that a decision about a CompressionJob depends on. */
export interface ObservedState {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly resource: CompressionJob;
  /** When this process saw that the resource is being deleted, milliseconds since 1970. */
  readonly deletionSeenAt?: number | undefined;
  /** Id of the job in the REST interface. */
  readonly jobId: string;
  /** Worker Jobs with the job's id, and an existing Job with the name of one to be created. */
  readonly workerJobs: readonly WorkerJob[];
  /** Pods with the job's id under the workers' account. */
  readonly pods: readonly WorkerPod[];
  readonly targets: readonly ConfiguredTarget[];
  readonly settings: JobSettings;
  /** What the last job of the same model, target and recipe took. */
  readonly knownCosts?: JobCosts | undefined;
  readonly workerJobRejection?: WorkerJobRejection | undefined;
  /** Nodes that report to the control plane, of those that had to be looked up. */
  readonly readyNodes?: ReadonlySet<string>;
  /** The cluster's warning about pods that are not created or not started. */
  readonly stepWarning: StepWarning | undefined;
}
