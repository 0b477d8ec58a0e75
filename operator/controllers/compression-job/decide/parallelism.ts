import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import type { JobStep } from "../../../../src/resources/job-identity.ts";
import { stepSequences } from "../observe/steps.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { backoffLimit } from "./pod-failure-policy.ts";

type WorkerJobSpec = NonNullable<KubernetesJob["spec"]>;

/** `recipe.parallelism`: a job with several pods runs in three steps. */
export function firstStep(parallelism: number): JobStep {
  return parallelism > 1 ? "shard" : "work";
}

/** Undefined after the last step. */
export function nextStep({ step }: WorkerJob): JobStep | undefined {
  const sequence = stepSequences.find((steps) => step !== undefined && steps.includes(step)) ?? [];
  return sequence[sequence.findIndex((each) => each === step) + 1];
}

/** How many pods of a worker Job have to complete, how many run at once, and how often each. */
export function completionFields(step: JobStep, parallelism: number): Partial<WorkerJobSpec> {
  if (step !== "optimize") return { backoffLimit };
  return {
    completionMode: "Indexed",
    completions: parallelism,
    parallelism,
    backoffLimitPerIndex: backoffLimit,
    maxFailedIndexes: 0,
  };
}
