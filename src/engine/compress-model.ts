import { join } from "node:path";
import { rm } from "node:fs/promises";
import { errorMetrics, type ErrorMetrics } from "./evaluate/error-metrics.ts";
import type { ErrorSums } from "./evaluate/error-sums.ts";
import { elementTypeName } from "./onnx/element-type.ts";
import type { ModelLayout } from "./onnx/model-layout.ts";
import type { OnnxModel } from "./onnx/onnx-model.ts";
import { type Destination, type WrittenFile, writeLayout } from "./onnx/write-model.ts";
import { planCompression, type CompressionPlan, type PlanOptions } from "./plan-compression.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { runTasks } from "./quantize/tasks/run-tasks.ts";
import {
  adoptCompletedTasks,
  readPartitions,
  type CompletedTasks,
} from "./quantize/tasks/completed-tasks.ts";
import { outputPayloads } from "./quantize/tasks/task-outputs.ts";
import type { TaskResult, WeightTask } from "./quantize/tasks/weight-task.ts";

interface CompressOptions extends PlanOptions {
  /** Folder of the result's files, which appear when they are complete. */
  readonly outputDirectory: string;
  /** SHA-256 of the ONNX file, where it is known; shares are checked faster then. */
  readonly modelSha256?: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the fraction of the work that is done, from 0 to 1. */
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

export interface WeightReport {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dataType: string;
  readonly originalBytes: number;
  readonly resultBytes: number;
  /** Operators that use the weight. */
  readonly usedBy: readonly string[];
  /** The form of the weight in the result; null where it does not change. */
  readonly form: string | null;
  /** Why the weight does not change or does not get the recipe's own scheme. */
  readonly reason: string | null;
  /** Difference of the weight's new form from the original; null where it does not change. */
  readonly error: ErrorMetrics | null;
}

export interface CompressionReport {
  /** The result's files, the ONNX file first. */
  readonly files: readonly WrittenFile[];
  readonly originalBytes: number;
  readonly resultBytes: number;
  readonly shards: number;
  readonly weights: readonly WeightReport[];
}

/**
 * Compresses a model by a recipe. Weights are read, transformed and written a tile at a time.
 * @throws ServiceError those of planCompression, storage_full
 */
export async function compressModel(
  modelPath: string,
  options: CompressOptions,
): Promise<CompressionReport> {
  return compressWithShares(new Map(), modelPath, options);
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
  return compressWithShares(await readPartitions(sharePaths), modelPath, options);
}

async function compressWithShares(
  shares: CompletedTasks,
  modelPath: string,
  options: CompressOptions,
): Promise<CompressionReport> {
  const rejected = new Map<number, string>();
  for (;;) {
    options.signal.throwIfAborted();
    const plan = await planCompression(modelPath, options, rejected);
    logPlan(plan, options);
    const { files, results } = await executePlan(plan, shares, options);
    const newRejections = results.filter(({ rejection }) => rejection !== undefined);
    if (newRejections.length === 0) return buildCompressionReport(plan, files, results);
    for (const { weight, rejection = "" } of newRejections) rejected.set(weight, rejection);
    await Promise.all(
      files.map(({ name }) => rm(join(options.outputDirectory, name), { force: true })),
    );
  }
}

/**
 * Reports what compressModel would do, without reading weights or writing files. The real result
 * differs where a weight turns out to fit no form when it is read.
 * @throws ServiceError those of planCompression
 */
export async function predictCompression(
  modelPath: string,
  options: PlanOptions & Pick<CompressOptions, "log">,
): Promise<CompressionReport> {
  const plan = await planCompression(modelPath, options);
  logPlan(plan, options);
  return buildCompressionReport(plan, [], []);
}

function logPlan(
  { weights, shards, originalBytes, resultBytes }: CompressionPlan,
  { log }: Pick<CompressOptions, "log">,
): void {
  const changed = weights.filter(({ format }) => format !== undefined);
  const change = `${changed.length} of ${weights.length} weights change`;
  log(`Plan: ${change}, ${originalBytes} to ${resultBytes} bytes`);
  if (shards.count > 1) log(`Weights are divided into ${shards.count} shards`);
  for (const [reason, count] of countReasons(weights)) {
    log(`Left alone: ${count} weights: each ${reason}`);
  }
}

/** The reasons for which weights do not change, most frequent first. */
function countReasons(weights: readonly WeightPlan[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { format, reason } of weights) {
    if (format !== undefined || reason === undefined) continue;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

async function executePlan(
  { model, tasks: planned, layout }: CompressionPlan,
  shares: CompletedTasks,
  { outputDirectory: directory, modelSha256, signal, onProgress, log }: CompressOptions,
): Promise<{ files: WrittenFile[]; results: TaskResult[] }> {
  const adopting = { completed: shares, modelSha256, signal };
  const completed = await adoptCompletedTasks(model, planned, adopting);
  const adopted = completed.filter((result) => result !== undefined);
  if (adopted.some(({ rejection }) => rejection !== undefined)) {
    return { files: [], results: adopted };
  }
  const tasks = planned.filter((_, index) => completed[index] === undefined);
  if (shares.size > 0) {
    log(`${planned.length - tasks.length} of ${planned.length} weights come from shares`);
  }
  const total = tasks.reduce((sum, task) => sum + task.sourceBytes, copiedBytes(model, layout));
  let done = 0;
  const onBytes = (bytes: number) => {
    done += bytes;
    onProgress(total === 0 ? 1 : done / total, "Compressing weights");
  };
  let results: TaskResult[] = [];
  const writeComputedPayloads = async (destinations: FindDestinations) => {
    results = await runTasks(placeTasks(tasks, destinations), { signal, onBytes });
  };
  const options = { directory, layout, signal, onBytes, writeComputedPayloads };
  const files = await writeLayout(model, options);
  return { files, results: [...adopted, ...results] };
}

/** Bytes of the payloads that do not change. */
function copiedBytes({ payloads }: OnnxModel, { placements }: ModelLayout): number {
  return [...placements.keys()].reduce((sum, index) => {
    const payload = payloads[index];
    return sum + (payload?.kind === "file" ? payload.length : 0);
  }, 0);
}

type FindDestinations = (payload: number) => readonly Destination[];

function placeTasks(tasks: readonly WeightTask[], destinations: FindDestinations) {
  return tasks.map((task) => {
    const payloads = outputPayloads(task);
    return {
      task,
      destinations: new Map(payloads.map((payload) => [payload, destinations(payload)])),
    };
  });
}

function buildCompressionReport(
  plan: CompressionPlan,
  files: readonly WrittenFile[],
  results: readonly TaskResult[],
): CompressionReport {
  const sums = new Map(results.map((result) => [result.weight, result.sums]));
  return {
    files,
    originalBytes: plan.originalBytes,
    resultBytes: plan.resultBytes,
    shards: plan.shards.count,
    weights: plan.weights.map((weight) => reportWeight(weight, sums.get(weight.weight.index))),
  };
}

function reportWeight(
  { weight, bytes, format, reason }: WeightPlan,
  error: ErrorSums | undefined,
): WeightReport {
  return {
    name: weight.name,
    shape: weight.tensor.dims.map(Number),
    dataType: elementTypeName(weight.tensor.dataType),
    originalBytes: bytes,
    resultBytes: format?.bytes ?? bytes,
    usedBy: [...new Set(weight.uses.map(({ node }) => node.opType))],
    form: format?.description ?? null,
    reason: reason ?? null,
    error: error === undefined ? null : errorMetrics(error),
  };
}
