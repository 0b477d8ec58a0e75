import type { JobError } from "../../../../src/contract/errors.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import type { WorkerPod } from "../observe/worker-pod.ts";

/** How a step of a job ended. */
export interface StepEnd {
  /** Undefined if the step succeeded. */
  readonly error: JobError | undefined;
  /** Whether the service has confirmed to the worker that it recorded the result. */
  readonly delivered: boolean;
}

/** A step whose worker Job exists. */
export interface ObservedStep {
  readonly workerJob: WorkerJob;
  /** Those of the worker Job. */
  readonly pods: readonly WorkerPod[];
  readonly now: number;
  /** Time of work that is left for it, with what its pods have had. */
  readonly deadlineSeconds: number;
  /** The cluster's warning about the worker Job or its pods; empty if there is none. */
  readonly warningMessage: string;
  /** A pod that cannot be started for so long fails its job. */
  readonly podStartSeconds: number;
}
