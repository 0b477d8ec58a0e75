import { writeFile } from "node:fs/promises";
import path from "node:path";
import { observeActivations, type ObserveOptions } from "./calibrate/observe-activations.ts";
import { chooseRange } from "./calibrate/choose-range.ts";
import type { ValueHistogram } from "./calibrate/value-histogram.ts";
import { observeRanges } from "./calibrate/observe-ranges.ts";
import { findDialect } from "./quantize/dialects.ts";
import { isConvolution, isStatic, listStaticValues } from "./quantize/formats/multiply-static.ts";
import type { ActivationRange } from "./quantize/plan-revision.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import type { RangeMethod, Recipe } from "../contract/jobs/recipe.ts";
import type { Telemetry } from "../contract/jobs/telemetry.ts";
import { type TensorData, tensorNumbers } from "./evaluate/tensor-data.ts";
import { openOriginal } from "./language/open-original.ts";
import { type CompressionPlan, normalizeGraph } from "./plan-compression.ts";
import { isAttributeSet } from "./quantize/channel-axis.ts";
import {
  findWeights,
  type Weight,
  type WeightConsumer,
  weightDims,
} from "./quantize/find-weights.ts";
import { GraphIndex } from "./quantize/graph-index.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { at } from "./onnx/at.ts";
import { countElements } from "./onnx/tensor-shape.ts";
import { findProductMatrix, gathersRows } from "./quantize/formats/consumer-matrix.ts";
import { InputMoments, momentBytes } from "./quantize/kernels/input-moments.ts";
import { Obstacle } from "./quantize/obstacle.ts";
import type { BlockTask, MomentsFile } from "./quantize/tasks/weight-task.ts";

export interface ModelCalibration {
  /** Undefined where no weight is in blocks of a product. */
  readonly summary: Omit<NonNullable<Telemetry["calibration"]>, "fittedWeights"> | undefined;
  /** Of the activations that are quantized in advance, by their names. */
  readonly histograms: ReadonlyMap<string, ValueHistogram>;
  /** Weights whose operators take or give values that no range holds, by their position, and why. */
  readonly unfit: ReadonlyMap<number, string>;
  /** Of the operators that take a static weight on the samples, by the weight's position. */
  readonly multiplications: ReadonlyMap<number, number>;
  /** Moments of a weight's inputs, by the position of the weight. */
  readonly moments: ReadonlyMap<number, MomentsFile>;
}

/** Most bytes of moments that are summed up in one run of the model. */
const maxMomentBytes = 512 * 1024 ** 2;

/**
 * Runs the original on the calibration's samples, and sums up the second moments of the inputs of
 * each product that takes a weight in blocks. Memory does not grow with the samples.
 * @throws ServiceError those of observeActivations
 */
export async function calibrateModel(
  modelPath: string,
  plan: CompressionPlan,
  options: ObserveOptions & { readonly recipe: Recipe },
): Promise<ModelCalibration> {
  const model = await openOriginal(modelPath, Number.MAX_SAFE_INTEGER);
  normalizeGraph(model, options.recipe);
  const weights = findWeights(model);
  const wanted = groupByInputs(plan, weights, model.proto.graph);
  const files = new Map<number, MomentsFile>();
  let summary: ModelCalibration["summary"];
  for (const [index, groups] of divideRuns(wanted).entries()) {
    const moments = new Map(groups.map((group) => [group, new InputMoments(group.inputs)]));
    const values = [...new Set(groups.flatMap((group) => group.values))];
    const observed = await observeActivations(model, values, {
      ...options,
      visit: (tensor) => addTensor(moments, tensor),
    });
    const { data, count: samples, evaluationSamples } = observed;
    summary = { data, samples, evaluationSamples };
    for (const [position, [group, sums]] of [...moments].entries()) {
      const file = path.join(options.scratchDirectory, `moments-${index}-${position}`);
      if (!(await writeMoments(file, sums))) continue;
      for (const weight of group.weights) files.set(weight, { path: file, rows: sums.rows });
    }
  }
  const statics = plan.weights.filter(({ format }) => isStatic(format));
  const index = new GraphIndex(model.proto);
  const dialect = findDialect(options.recipe);
  const valuesOf = (plan: WeightPlan) =>
    at(weights, plan.weight.index).consumers.flatMap((consumer) =>
      listStaticValues(index, consumer, dialect),
    );
  const multiplicationsOf = ({ weight: { index: position } }: WeightPlan) => {
    const weight = at(weights, position);
    const counts = weight.consumers.map((consumer) => {
      const [data = "", result = ""] = listStaticValues(index, consumer, dialect);
      const counted = isConvolution(consumer.node) ? result : data;
      return (histograms.get(counted)?.count ?? 0) * countProducts(weight, consumer);
    });
    return [position, counts.reduce((sum, each) => sum + each, 0)] as const;
  };
  const values = [...new Set(statics.flatMap(valuesOf))];
  let histograms: ModelCalibration["histograms"] = new Map();
  if (values.length > 0) {
    const found = await observeRanges(model, values, options);
    histograms = found.histograms;
    const { data, count: samples, evaluationSamples } = found.observed;
    summary = { data, samples, evaluationSamples };
  }
  return {
    summary,
    histograms,
    unfit: listUnfit(statics, valuesOf, histograms),
    multiplications: new Map(statics.map(multiplicationsOf)),
    moments: files,
  };
}

/** Products for each element of a convolution's result, or of the input of another product. */
function countProducts(weight: Weight, consumer: WeightConsumer): number {
  const dims = weightDims(weight);
  const matrix = findProductMatrix(consumer);
  return matrix instanceof Obstacle ? countElements(dims.slice(1)) : matrix.n.size;
}

/** Largest size of an activation: constants such as those of attention masks stand for infinity. */
const maxActivation = 1e6;

function listUnfit(
  statics: readonly WeightPlan[],
  valuesOf: (plan: WeightPlan) => string[],
  histograms: ModelCalibration["histograms"],
): Map<number, string> {
  const isUnfit = (value: string) => {
    const { low = NaN, high = NaN } = histograms.get(value) ?? {};
    return !(low >= -maxActivation && high <= maxActivation);
  };
  const unfit = statics.flatMap((plan) => {
    const found = valuesOf(plan).find(isUnfit);
    return found === undefined ? [] : [[plan.weight.index, found] as const];
  });
  return new Map(
    unfit.map(([index, value]) => [
      index,
      `is used beside ${quoteName(value)}, which has values of no finite range`,
    ]),
  );
}

/** The ranges of activations that a method makes of what was observed. */
export function chooseRanges(
  { histograms }: ModelCalibration,
  method: RangeMethod,
): ReadonlyMap<string, ActivationRange> {
  return new Map(
    Array.from(histograms, ([name, histogram]) => [name, chooseRange(histogram, method)]),
  );
}

/** Weights whose products have the same inputs. */
interface InputGroup {
  readonly values: readonly string[];
  readonly inputs: number;
  readonly weights: number[];
}

function groupByInputs(
  { tasks }: CompressionPlan,
  weights: readonly Weight[],
  graph: object | undefined,
): InputGroup[] {
  const groups = new Map<string, InputGroup>();
  for (const task of tasks) {
    const weight = weights[task.weight];
    if (weight === undefined || task.kind !== "blocks" || task.matrices > 1) continue;
    const values = listInputs(weight, task, graph);
    if (values.length === 0) continue;
    const key = JSON.stringify([values, task.shape.k]);
    const group = groups.get(key) ?? { values, inputs: task.shape.k, weights: [] };
    groups.set(key, group);
    group.weights.push(task.weight);
  }
  return [...groups.values()];
}

/**
 * Values that products multiply the whole weight with, as rows of its inputs; none where rows are
 * gathered too, as those of a tied embedding are: rounding that spares products spoils the rows.
 */
function listInputs(weight: Weight, { shape }: BlockTask, graph: object | undefined): string[] {
  if (weight.consumers.some((consumer) => gathersRows(weight, consumer))) return [];
  const isProduct = (consumer: WeightConsumer): boolean => {
    const matrix = findProductMatrix(consumer);
    return (
      !(matrix instanceof Obstacle) &&
      consumer.scope.body === graph &&
      matrix.k.size === shape.k &&
      weightDims(weight)[matrix.k.source] === shape.k &&
      !isAttributeSet(consumer.node, "transA")
    );
  };
  const values = weight.consumers.filter(isProduct).flatMap(({ node }) => node.input.slice(0, 1));
  return [...new Set(values)].toSorted();
}

/** Divides what is to be summed up so that a run needs no more memory than is allowed. */
function divideRuns(groups: readonly InputGroup[]): InputGroup[][] {
  const runs: InputGroup[][] = [];
  let bytes = Infinity;
  for (const group of groups) {
    const needed = momentBytes(group.inputs);
    if (bytes + needed > maxMomentBytes) {
      runs.push([]);
      bytes = 0;
    }
    runs.at(-1)?.push(group);
    bytes += needed;
  }
  return runs;
}

function addTensor(moments: ReadonlyMap<InputGroup, InputMoments>, tensor: TensorData): void {
  for (const [{ values, inputs }, sums] of moments) {
    if (!values.includes(tensor.name)) continue;
    if (tensor.shape.at(-1) !== inputs) {
      const shape = `[${tensor.shape.join()}]`;
      throw new TypeError(`"${tensor.name}" has shape ${shape} and is to have rows of ${inputs}`);
    }
    const numbers = tensorNumbers(tensor);
    sums.add(numbers instanceof Float32Array ? numbers : Float32Array.from(numbers));
  }
}

/** @returns false for moments that are not finite, which no rounding can be fitted to */
async function writeMoments(file: string, sums: InputMoments): Promise<boolean> {
  const segments = [...sums.read()];
  if (!segments.every((segment) => segment.every(Number.isFinite))) return false;
  await writeFile(file, segments);
  return true;
}

/** The plan with each weight's rounding fitted to the moments that are known. */
export function fitPlan(
  plan: CompressionPlan,
  calibration: ModelCalibration | undefined,
): CompressionPlan {
  if (calibration === undefined) return plan;
  const fitted = new Set<number>();
  const tasks = plan.tasks.map((task) => {
    const moments = calibration.moments.get(task.weight);
    if (moments === undefined || task.kind !== "blocks" || task.matrices > 1) return task;
    fitted.add(task.weight);
    return { ...task, moments };
  });
  const weights = plan.weights.map((each) => {
    const { format } = each;
    if (format === undefined || !fitted.has(each.weight.index)) return each;
    const description = `${format.description}, fitted to the inputs`;
    return { ...each, format: { ...format, description } };
  });
  return { ...plan, tasks, weights };
}
