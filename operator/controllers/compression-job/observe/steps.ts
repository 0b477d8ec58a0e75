import type { JobStep } from "../../../../src/resources/job-identity.ts";
import type { WorkerJob } from "./worker-job.ts";
import type { WorkerPod } from "./worker-pod.ts";
import { ownedWorkerJobs, type ObservedState } from "./observed-state.ts";

/** The steps of a job that several pods work on, and of one that a single pod does. */
const stepSequences: readonly (readonly JobStep[])[] = [
  ["shard", "optimize", "assemble"],
  ["work"],
];

export function firstStep(parallelism: number): JobStep {
  return parallelism > 1 ? "shard" : "work";
}

export function nextStep({ step }: WorkerJob): JobStep | undefined {
  const sequence = stepSequences.find((steps) => step !== undefined && steps.includes(step)) ?? [];
  return sequence[sequence.findIndex((each) => each === step) + 1];
}

/** The child Job of the step that the job has come to. */
export function latestWorkerJob(
  observed: Pick<ObservedState, "resource" | "workerJobs">,
): WorkerJob | undefined {
  const workerJobs = ownedWorkerJobs(observed);
  const steps = stepSequences.flatMap((sequence) => sequence.toReversed());
  return steps
    .map((step) => workerJobs.find((workerJob) => workerJob.step === step))
    .find((workerJob) => workerJob !== undefined);
}

/** The pods of a child Job. */
export function workerJobPods(
  { pods }: Pick<ObservedState, "pods">,
  { uid }: WorkerJob,
): readonly WorkerPod[] {
  return pods.filter(({ workerJobUid }) => workerJobUid === uid);
}
