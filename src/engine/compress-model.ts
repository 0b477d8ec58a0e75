import { buildCompressionReport } from "./compression-report.ts";
import type { CompressionReport } from "./compression-report.ts";
import { carryOutPasses } from "./carry-out-passes.ts";
import type { CompressOptions } from "./execute-plan.ts";
import { logPlan } from "./log-plan.ts";
import { planCompression, type PlanOptions } from "./plan-compression.ts";
import { readPartitions } from "./quantize/tasks/completed-tasks.ts";

/**
 * Compresses a model by a recipe. Weights are read, transformed and written a tile at a time.
 * @throws ServiceError those of planCompression, storage_full
 */
export async function compressModel(
  modelPath: string,
  options: CompressOptions,
): Promise<CompressionReport> {
  return carryOutPasses(new Map(), modelPath, options);
}

/**
 * Compresses as compressModel does, with the same result, from the files of optimizeShare; weights
 * that they do not have are compressed here.
 * @throws ServiceError those of compressModel
 */
export async function assembleShares(
  modelPath: string,
  options: CompressOptions,
  sharePaths: readonly string[],
): Promise<CompressionReport> {
  return carryOutPasses(await readPartitions(sharePaths), modelPath, options);
}

/**
 * Reports what compressModel would do, without reading weights or writing files. The real result
 * differs where a weight turns out to fit no form when it is read, and by the nodes of weights
 * whose operators turn out to be slower quantized.
 * @throws ServiceError those of planCompression
 */
export async function predictCompression(
  modelPath: string,
  { plan: known, ...options }: PlanOptions & Pick<CompressOptions, "log" | "plan">,
): Promise<CompressionReport> {
  const plan = known ?? (await planCompression(modelPath, options));
  logPlan(plan, options.log);
  return buildCompressionReport(plan, [], []);
}
