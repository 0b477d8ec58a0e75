import { z } from "zod";
import {
  type CompressionJobSpec,
  compressionJobSpec,
} from "../../../src/contract/compression-job.ts";
import { effectiveRecipe, findTarget } from "../../../src/contract/effective-recipe.ts";
import { type JobError, ServiceError } from "../../../src/contract/errors.ts";
import type { Target } from "../../../src/contract/target.ts";

export interface WorkPlan {
  readonly target: Target;
  /** Pods that optimize a share of the weights each; 1 where a single pod does all of the work. */
  readonly parallelism: number;
}

/** What is to be done for a spec; the error of a job that cannot be done where there is one. */
export function planWork(
  spec: CompressionJobSpec,
  targets: readonly Target[],
):
  | { readonly plan: WorkPlan; readonly error?: never }
  | { readonly plan?: never; readonly error: JobError } {
  const parsed = compressionJobSpec.safeParse(spec);
  if (!parsed.success)
    return { error: { code: "resource_invalid", message: z.prettifyError(parsed.error) } };
  const { kind, dryRun, recipe } = parsed.data;
  try {
    const target = findTarget(targets, parsed.data.target);
    const { parallelism } = effectiveRecipe(target, recipe);
    return { plan: { target, parallelism: kind === "compress" && !dryRun ? parallelism : 1 } };
  } catch (error) {
    if (error instanceof ServiceError)
      return { error: { code: error.code, message: error.message } };
    if (error instanceof z.ZodError)
      return { error: { code: "validation_failed", message: z.prettifyError(error) } };
    throw error;
  }
}
