import type { Recipe } from "../contract/jobs/recipe.ts";
import { includesDotProducts } from "../contract/jobs/target.ts";
import type { JobCosts } from "../contract/jobs/telemetry.ts";
import { readAvailableMemoryBytes } from "./accuracy/available-memory.ts";
import { runsCandidates } from "./candidate-runner.ts";
import { limitSessionBytes } from "./accuracy/model-run.ts";
import { readsLines } from "./samples/input-content.ts";
import { readInstructionSets } from "./evaluate/describe-device.ts";
import { inputShape, type SizeChoice } from "./samples/input-sizes.ts";
import { readPeakMemoryBytes } from "./runtime/read-peak-memory-bytes.ts";
import { maxCopiedBytes } from "./compress-model.ts";
import type { ValueInfoProto } from "./onnx/onnx_pb.js";
import { countElements } from "./onnx/tensor-shape.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import { forecastTaskMemory } from "./quantize/tasks/run-tasks.ts";
import type { WeightOperation } from "./quantize/weight-format.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";

const mebibyte = 1024 ** 2;

/** What `bench -- forecast` measured on Linux, x64. */
const measured = {
  /** What the work adds to a worker that has planned: code that is compiled, heap. */
  workerBytes: 22 * mebibyte,
  /** The part of it that is there beside tasks: V8 optimizes the parser of HTTP before that. */
  besideTasksBytes: 12 * mebibyte,
  /** And to one that makes the tokenizer and the graph of a checkpoint. */
  checkpointBytes: 72 * mebibyte,
  /** A process with ONNX Runtime that has a tiny model. */
  runtimeBytes: 101 * mebibyte,
  /** One with CUDA's libraries and the context of a GPU, on an NVIDIA H200. */
  cudaRuntimeBytes: 990 * mebibyte,
  /** Samples in the worker, and values between operators in the runtime, of both models. */
  valueBytes: 8 * mebibyte,
  /** And for each number of a sample: operators pass on many for each number of a picture. */
  sampleFactor: 200,
  /** Copies of a sample's outputs, of both models in both processes. */
  outputCopies: 10,
  /** Of a dimension of an output that the model leaves open. */
  openSize: 64,
  /** Most memory of a session for each byte of weights in float32, while it loads them. */
  originalFactor: 1.45,
  restoredFactor: 2.4,
  /** The same for each byte of weights that operators take as they are stored, and after that. */
  packedFactor: 2.2,
  packedLoadedFactor: 1.6,
};

/** Of the largest of the samples that are generated, where a model leaves its sizes open. */
const largestSample: SizeChoice = { past: 1, sequence: 64, height: 256, width: 384, idLimit: 2 };
/** The same for a model that takes lines of text. */
const largestLine: SizeChoice = { ...largestSample, height: 48, width: 480 };

interface ForecastOptions {
  readonly recipe: Recipe;
  readonly executionProvider: "cpu" | "cuda";
  readonly isCheckpoint: boolean;
  /** Whether weights are read from elsewhere as tasks need them. */
  readonly isRemote: boolean;
  /** Whether other pods quantize shares of the weights, which are fetched and put together. */
  readonly isAssembled: boolean;
  /** Bytes of the files that the job's folder has when it has planned. */
  readonly folderBytes: number;
}

/**
 * What a job takes at most, as its plan says. Its worker, which has read the plan, is measured: what
 * Node takes differs between machines. The rest are sizes of what is planned, and a few constants;
 * of formats that timing will choose, the larger, except where the processor leaves no doubt.
 * Models that do not fit the memory at hand are run in stages that do.
 */
export async function forecastJob(
  plan: CompressionPlan,
  options: ForecastOptions,
): Promise<Omit<JobCosts, "seconds">> {
  const residentBytes = process.memoryUsage.rss();
  const tasksBytes = forecastTaskMemory(plan.tasks, options.isRemote);
  const checkpointBytes = options.isCheckpoint ? measured.checkpointBytes : 0;
  const sessionLimit = limitSessionBytes(await readAvailableMemoryBytes());
  const hasDotProducts = includesDotProducts(await readInstructionSets());
  const sessionsBytes = Math.min(forecastSessions(plan, options, hasDotProducts), sessionLimit);
  const addedBytes = Math.max(
    measured.besideTasksBytes + tasksBytes,
    measured.workerBytes + (isRun(options.recipe) ? sessionsBytes : 0),
  );
  const expectedBytes = Math.ceil(residentBytes + checkpointBytes + addedBytes);
  const peakMemoryBytes = Math.max(await readPeakMemoryBytes(), expectedBytes);
  return { peakMemoryBytes, diskBytes: forecastDisk(plan, options) };
}

function isRun({ evaluation }: Recipe): boolean {
  return evaluation.level === "outputs";
}

function isTimed(recipe: Recipe): boolean {
  return isRun(recipe) && recipe.evaluation.latencyBudgetSeconds > 0;
}

function hasCandidates({ recipe, isCheckpoint }: ForecastOptions): boolean {
  return runsCandidates(recipe) && recipe.dequantize !== "run" && !isCheckpoint;
}

/** Memory of samples, and of both models in one process where they are timed. */
function forecastSessions(
  { model, weights }: CompressionPlan,
  options: ForecastOptions,
  hasDotProducts: boolean,
): number {
  const { graph } = model.proto;
  const { valueBytes, sampleFactor, outputCopies } = measured;
  const constants = new Set(graph?.initializer.map(({ name }) => name));
  const inputs = (graph?.input ?? []).filter(({ name }) => !constants.has(name));
  const largest = graph !== undefined && readsLines(graph) ? largestLine : largestSample;
  const numbers = sum(inputs, (input) =>
    countElements(inputShape({ shape: listSizes(input) }, largest)),
  );
  const outputBytes = 4 * sum(graph?.output ?? [], countOutput);
  const values = valueBytes + numbers * sampleFactor + outputBytes * outputCopies;
  const runtime =
    options.executionProvider === "cuda"
      ? measured.cudaRuntimeBytes + forecastLoading(weights)
      : measured.runtimeBytes + forecastModels(weights, options, hasDotProducts);
  return runtime + values;
}

/** Weights on their way to the GPU: of the original or of the result. */
function forecastLoading(weights: readonly WeightPlan[]): number {
  const original = sum(weights, ({ weight }) => weight.bytes);
  return Math.max(
    original,
    sum(weights, ({ weight, format }) => format?.bytes ?? weight.bytes),
  );
}

/** Both models in the memory of a process, in one where they are timed. */
function forecastModels(
  weights: readonly WeightPlan[],
  options: ForecastOptions,
  hasDotProducts: boolean,
): number {
  const original = sumNeeds(weights, (plan) => needOf(floatBytes(plan), measured.originalFactor));
  // Such a result is faster than its original on any processor that has dot products of integers.
  const isFaster = hasDotProducts && weights.every(isOfIntegers);
  const areRestored = hasCandidates(options) && !isFaster;
  const result = sumNeeds(weights, (plan) => resultNeed(plan, areRestored));
  // Rounds open either first: one is loaded then while the other one loads.
  return isTimed(options.recipe)
    ? Math.max(original.loaded + result.loading, original.loading + result.loaded)
    : Math.max(original.loading, result.loading);
}

/** Sizes of a value, and names or nothing of those that the model leaves open. */
function listSizes({ type }: ValueInfoProto): (number | string)[] {
  if (type?.value.case !== "tensorType") return [];
  const { dim = [] } = type.value.value.shape ?? {};
  return dim.map(({ value }) => {
    if (value.case === "dimParam") return value.value;
    return value.case === "dimValue" && value.value > 0n ? Number(value.value) : "";
  });
}

function countOutput(output: ValueInfoProto): number {
  return countElements(
    listSizes(output).map((size, axis) => {
      if (typeof size === "number") return size;
      return axis === 0 ? 1 : measured.openSize;
    }),
  );
}

function floatBytes({ weight: { tensor } }: WeightPlan): number {
  return 4 * countElements(tensor.dims.map(Number));
}

/** Bytes that a session takes of a model's weights: at most while it loads them, and from then on. */
interface SessionNeed {
  readonly loading: number;
  readonly loaded: number;
}

function needOf(bytes: number, loadingFactor: number, loadedFactor = 1): SessionNeed {
  return { loading: bytes * loadingFactor, loaded: bytes * loadedFactor };
}

function sumNeeds(
  weights: readonly WeightPlan[],
  need: (plan: WeightPlan) => SessionNeed,
): SessionNeed {
  const needs = weights.map(need);
  return {
    loading: sum(needs, ({ loading }) => loading),
    loaded: sum(needs, ({ loaded }) => loaded),
  };
}

/** Whether all that multiplies by a weight takes it as integers, or none of it was quantized. */
function isOfIntegers({ format }: WeightPlan): boolean {
  if (format === undefined || format.storage.kind === "half") return true;
  const integers: readonly WeightOperation[] = ["integer-product", "gather-rows"];
  return format.operations.every((operation) => integers.includes(operation));
}

/** @param areRestored whether weights whose format is chosen by its time are restored: the most */
function resultNeed(plan: WeightPlan, areRestored: boolean): SessionNeed {
  const { format } = plan;
  const { originalFactor, restoredFactor, packedFactor, packedLoadedFactor } = measured;
  if (format === undefined || format.storage.kind === "half") {
    return needOf(floatBytes(plan), originalFactor);
  }
  const isRestored =
    (areRestored && isChosenByTime(plan)) ||
    format.operations.some((operation) => operation === "restore");
  return isRestored
    ? needOf(floatBytes(plan), restoredFactor)
    : needOf(format.bytes, packedFactor, packedLoadedFactor);
}

/** Everything is there at once in the end, and candidates before that. */
function forecastDisk(
  { originalBytes, resultBytes, weights, layout: { files } }: CompressionPlan,
  options: ForecastOptions,
): number {
  const { recipe, isCheckpoint, isRemote, isAssembled, folderBytes } = options;
  const { sharding } = recipe;
  const results = [
    true,
    // Links of external data are refused, and what is kept for another attempt stays.
    files.length > 1 && resultBytes <= maxCopiedBytes,
    hasCandidates(options) && weights.some(isChosenByTime),
    sharding.stages !== undefined || sharding.maxStageBytes !== undefined,
    // The archive of its folder.
    isCheckpoint,
    isAssembled,
  ];
  // A worker that only plans has no more than the headers, and one that runs the original has all.
  const modelBytes = isRemote && isRun(recipe) ? originalBytes : folderBytes;
  const original = isCheckpoint && isRun(recipe) ? sum(weights, ({ weight }) => weight.bytes) : 0;
  return modelBytes + original + resultBytes * results.filter(Boolean).length;
}

function isChosenByTime({ format }: WeightPlan): boolean {
  if (format === undefined || format.storage.kind === "half") return false;
  return format.restoration !== "fold" || format.operations.some((each) => each !== "restore");
}

function sum<Item>(items: readonly Item[], numberOf: (item: Item) => number): number {
  return items.reduce((total, item) => total + numberOf(item), 0);
}
