import { ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { findUploadHash } from "../contract/models/model-source.ts";
import type { Assignment } from "../contract/jobs/worker.ts";
import {
  type CompressionPlan,
  type PlanOptions,
  planCompression,
} from "../engine/plan-compression.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";

/**
 * Reads the model's graph and shards its weights, so that an invalid model fails before any work.
 */
export async function planModel(
  { assignment, runStage, signal }: JobContext,
  inputs: JobInputs,
): Promise<CompressionPlan> {
  return runStage("shard", async ({ log }) => {
    const plan = await explainMissingData(assignment.model.source, async () => {
      return planCompression(inputs.model.path, planOptions(assignment));
    });
    signal.throwIfAborted();
    const { count, bytes } = plan.shards;
    const shards = `${count} ${count === 1 ? "shard" : "shards"}`;
    const largest = formatBytes(Math.max(...bytes));
    log(`${plan.weights.length} weights in ${shards}, the largest of ${largest}`);
    const [resultSize, originalSize] = [plan.resultBytes, plan.originalBytes].map(formatBytes);
    log(`The result will have ${resultSize} of ${originalSize}`);
    return plan;
  });
}

export function planOptions({ kind, recipe, target, limits }: Assignment): PlanOptions {
  return { kind, recipe, target, maxModelBytes: limits.maxModelBytes };
}

/** Adds to an error for missing external data how an uploaded model can have some. */
export async function explainMissingData<T>(source: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const isMissing = cause instanceof ServiceError && cause.code === "external_data_missing";
    if (!isMissing || findUploadHash(source) === undefined) throw cause;
    const advice = "upload it too, and name both files in a manifest (POST /manifests)";
    const message = `${cause.message}; ${advice}`;
    throw new ServiceError("external_data_missing", message, { cause });
  }
}
