import { ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { Assignment } from "../contract/worker.ts";
import { type PlanOptions, planCompression } from "../engine/plan-compression.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";

/** Reads the model's graph and divides its weights, so that what is wrong with the model shows before any work. */
export async function planModel(
  { assignment, runStage, signal }: JobContext,
  inputs: JobInputs,
): Promise<void> {
  await runStage("shard", async ({ log }) => {
    const plan = await explainMissingData(assignment.model.source, async () => {
      return planCompression(inputs.model.path, planOptions(assignment));
    });
    signal.throwIfAborted();
    const { count, bytes } = plan.shards;
    const largest = formatBytes(Math.max(...bytes));
    log(
      `${plan.weights.length} weights in ${count} ${count === 1 ? "shard" : "shards"}, the largest of ${largest}`,
    );
    log(
      `The result will have ${formatBytes(plan.resultBytes)} of ${formatBytes(plan.originalBytes)}`,
    );
  });
}

export function planOptions({
  kind,
  recipe,
  target,
  limits: { maxModelBytes },
}: Assignment): PlanOptions {
  return { kind, recipe, target, maxModelBytes };
}

/** External data comes along with `file://` models alone. */
export async function explainMissingData<T>(source: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isMissing = error instanceof ServiceError && error.code === "external_data_missing";
    if (!isMissing || source.startsWith("file:")) throw error;
    const how =
      "only models from file:// sources can have external data: put the weights into the ONNX file";
    throw new ServiceError("external_data_missing", `${error.message}; ${how}`, { cause: error });
  }
}
