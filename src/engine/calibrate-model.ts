import { groupByInputs } from "./calibrate/input-groups.ts";
import type { Observed, ObserveOptions } from "./calibrate/observe-activations.ts";
import { observeMoments } from "./calibrate/observe-moments.ts";
import { chooseRange } from "./calibrate/choose-range.ts";
import type { ValueHistogram } from "./calibrate/value-histogram.ts";
import { observeRanges } from "./calibrate/observe-ranges.ts";
import { smoothInputs, type SmoothedWeight } from "./calibrate/smooth-inputs.ts";
import { findChannelConstants } from "./quantize/formats/divide-inputs.ts";
import { findSmoothedInput, type SmoothedInput } from "./quantize/formats/smoothed-input.ts";
import { findDialect } from "./quantize/dialects.ts";
import { isConvolution, isStatic, listStaticValues } from "./quantize/formats/multiply-static.ts";
import { listBiasedInputs } from "./quantize/formats/product-bias.ts";
import type { ActivationRange, PlanRevision } from "./quantize/plan-revision.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import type { RangeMethod, Recipe } from "../contract/jobs/recipe.ts";
import type { Telemetry } from "../contract/jobs/telemetry.ts";
import { openOriginal } from "./language/open-original.ts";
import { type CompressionPlan, normalizeGraph, raiseModel } from "./plan-compression.ts";
import {
  findWeights,
  type Weight,
  type WeightConsumer,
  weightDims,
} from "./quantize/find-weights.ts";
import { GraphIndex } from "./quantize/graph-index.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { at } from "./onnx/at.ts";
import type { GraphProto } from "./onnx/onnx_pb.js";
import { countElements } from "./onnx/tensor-shape.ts";
import { findProductMatrix } from "./quantize/formats/consumer-matrix.ts";
import { Obstacle } from "./quantize/obstacle.ts";
import type { MomentsFile } from "./quantize/tasks/weight-task.ts";

export interface ModelCalibration {
  /** Undefined where nothing was observed. */
  readonly summary: Omit<NonNullable<Telemetry["calibration"]>, "fittedWeights"> | undefined;
  /** Of the activations that are quantized in advance, by their names. */
  readonly histograms: ReadonlyMap<string, ValueHistogram>;
  /** Of the channels of inputs that products take in integers, by their names. */
  readonly inputScales: PlanRevision["inputScales"];
  /** Of the channels of what operators with a bias take, by their names. */
  readonly inputMeans: PlanRevision["inputMeans"];
  /** Weights whose operators take or give values of no usable range, by their position, and why. */
  readonly unfit: ReadonlyMap<number, string>;
  /** Of the operators that take a static weight on the samples, by the weight's position. */
  readonly multiplications: ReadonlyMap<number, number>;
  /** Moments of a weight's inputs, by the position of the weight. */
  readonly moments: ReadonlyMap<number, MomentsFile>;
}

/**
 * Runs the original on the calibration's samples for what the plan's formats need of its activations:
 * second moments of the inputs of weights in blocks, scales of the channels that products in integers
 * take, and histograms of what is quantized in advance. Memory does not grow with the samples.
 * @throws ServiceError those of observeActivations
 */
export async function calibrateModel(
  modelPath: string,
  plan: CompressionPlan,
  options: ObserveOptions & { readonly recipe: Recipe },
): Promise<ModelCalibration> {
  const model = await openOriginal(modelPath, Number.MAX_SAFE_INTEGER);
  const { recipe } = options;
  normalizeGraph(model, recipe);
  const weights = raiseModel(model, findWeights(model), plan.opset);
  const groups = groupByInputs(plan.tasks, weights, model.proto.graph);
  // What a search measures of each weight by itself has to hold for the recipe that it finds.
  const isFollowed = recipe.auto === undefined && recipe.overrides === undefined;
  const { moments, observed } = await observeMoments(model, groups, { ...options, isFollowed });
  let summary = observed && summarize(observed);
  const statics = plan.weights.filter(({ format }) => isStatic(format));
  const index = new GraphIndex(model.proto);
  const dialect = findDialect(recipe);
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
  const smoothed = listSmoothed(plan, weights, { index, graph: model.proto.graph });
  const { inputScales, observed: channels } = await smoothInputs(model, smoothed, options);
  if (channels !== undefined) summary = summarize(channels);
  let histograms: ModelCalibration["histograms"] = new Map();
  let inputMeans: ModelCalibration["inputMeans"] = new Map();
  const averaged = plan.weights.flatMap(({ weight, format }) =>
    listBiasedInputs(at(weights, weight.index), format),
  );
  if (values.length > 0 || averaged.length > 0) {
    const found = await observeRanges(model, { values, averaged }, options);
    ({ histograms, inputMeans } = found);
    summary = summarize(found.observed);
  }
  return {
    summary,
    histograms,
    inputScales,
    inputMeans,
    unfit: listUnfit(statics, valuesOf, histograms),
    multiplications: new Map(statics.map(multiplicationsOf)),
    moments,
  };
}

/** Weights that products take in integers, where their input comes from a normalization. */
function listSmoothed(
  { tasks, weights: plans }: CompressionPlan,
  weights: readonly Weight[],
  { index, graph }: { readonly index: GraphIndex; readonly graph: GraphProto | undefined },
): SmoothedWeight[] {
  if (graph === undefined) return [];
  const isNormalized = ({ name, inputs: channels }: SmoothedInput) =>
    findChannelConstants(index, { body: graph, outer: undefined }, { name, channels }) !==
    undefined;
  return tasks.flatMap((task) => {
    const format = plans[task.weight]?.format;
    const input = findSmoothedInput(at(weights, task.weight), format, graph);
    return input === undefined || !isNormalized(input) ? [] : [{ task, input }];
  });
}

function summarize({ data, count: samples, evaluationSamples }: Observed) {
  return { data, samples, evaluationSamples };
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
    const size = Math.max(-low, high);
    // Where all are 0 or the tensor is always empty, it is not known how large others are.
    return !(size > 0 && size <= maxActivation);
  };
  const unfit = statics.flatMap((plan) => {
    const found = valuesOf(plan).find(isUnfit);
    return found === undefined ? [] : [[plan.weight.index, found] as const];
  });
  return new Map(
    unfit.map(([index, value]) => [
      index,
      `is used beside ${quoteName(value)}, whose values have no usable range`,
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
