import {
  type CompressionJobSpec,
  compressionJobSpec,
} from "../../../../src/contract/custom-resources/compression-job.ts";
import { effectiveRecipe, findTarget } from "../../../../src/contract/jobs/resolve-recipe.ts";
import { type JobError, ServiceError } from "../../../../src/contract/errors.ts";
import { formatProblem } from "../../../../src/contract/format-problem.ts";
import { parseInput } from "../../../../src/contract/parse-input.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";

export interface WorkPlan {
  readonly target: ConfiguredTarget;
  /** Pods that optimize a share of the weights each; 1 if a single pod does all of the work. */
  readonly parallelism: number;
}

type PlanResult =
  | { readonly plan: WorkPlan; readonly error?: never }
  | { readonly plan?: never; readonly error: JobError };

/** The plan for a spec, or the error of a job that cannot be done. */
export function planWork(
  spec: CompressionJobSpec,
  targets: readonly ConfiguredTarget[],
): PlanResult {
  const { data, problems } = parseInput(compressionJobSpec, spec);
  if (problems !== undefined) {
    const texts = problems.map(({ path, message }) =>
      formatProblem({ path: ["spec", ...path], message }),
    );
    return { error: { code: "resource_invalid", message: texts.join("; ") } };
  }
  try {
    return { plan: planSteps(data, targets) };
  } catch (error) {
    if (error instanceof ServiceError) {
      return { error: { code: error.code, message: error.message } };
    }
    throw error;
  }
}

function planSteps(spec: CompressionJobSpec, targets: readonly ConfiguredTarget[]): WorkPlan {
  const { kind, dryRun, recipe } = spec;
  const target = findTarget(targets, spec.target);
  const { parallelism } = effectiveRecipe(target, recipe);
  return { target, parallelism: kind === "compress" && !dryRun ? parallelism : 1 };
}
