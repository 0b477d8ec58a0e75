import { ServiceError } from "../contract/errors.ts";
import { granularitiesByScheme, type Recipe } from "../contract/recipe.ts";
import type { JobKind } from "../contract/status.ts";
import type { Target } from "../contract/target.ts";
import { quoteName } from "./onnx/quote-name.ts";
import { layoutModel } from "./onnx/layout-model.ts";
import type { ModelLayout } from "./onnx/model-layout.ts";
import { standardOpset } from "./onnx/standard-domain.ts";
import type { ModelProto } from "./onnx/onnx_pb.js";
import { minimumIrVersion, raiseOpset } from "./opset/raise-opset.ts";
import { inlineFunctions } from "./onnx/inline-functions.ts";
import { openModel } from "./onnx/open-model.ts";
import type { OnnxModel } from "./onnx/onnx-model.ts";
import { findWeights } from "./quantize/find-weights.ts";
import { planHalfPrecision, writeHalfPrecision } from "./quantize/half/plan-half-precision.ts";
import { planShards } from "./quantize/plan-shards.ts";
import type { ShardPlan } from "./quantize/plan-shards.ts";
import { planFoldedFormat } from "./quantize/formats/plan-weight.ts";
import { writeFormat } from "./quantize/formats/write-format.ts";
import { planWeights } from "./quantize/formats/plan-weights.ts";
import type { QuantizedWeightPlan, WeightPlan } from "./quantize/weight-plan.ts";
import { GraphRewrite } from "./quantize/graph-rewrite.ts";
import type { WeightTask } from "./quantize/tasks/weight-task.ts";

/** First opset whose Clip has its limits as inputs. */
const minFloat16Opset = 11;

export interface PlanOptions {
  readonly kind: JobKind;
  readonly recipe: Recipe;
  readonly target: Target;
  /** Largest sum of the ONNX file and its external data, bytes. */
  readonly maxModelBytes?: number;
}

/** What a compression does to a model, down to the size of every file; no weight is read for it. */
export interface CompressionPlan {
  readonly scheme: Recipe["scheme"];
  readonly model: OnnxModel;
  readonly weights: readonly WeightPlan[];
  readonly tasks: readonly WeightTask[];
  readonly shards: ShardPlan;
  readonly layout: ModelLayout;
  readonly originalBytes: number;
  readonly resultBytes: number;
}

/** What is known about a model's weights from earlier work on it, by their indices. */
export interface PlanRevision {
  /** Weights that fit no format when they were read, and why. */
  readonly rejected: ReadonlyMap<number, string>;
  /** Weights whose operators are not faster with quantized values, and what was measured. */
  readonly folded: ReadonlyMap<number, string>;
}

export const firstPlan: PlanRevision = { rejected: new Map(), folded: new Map() };

/**
 * Plans the compression of a model without reading weights.
 * @throws ServiceError those of openModel, recipe_unsupported, nothing_to_quantize,
 * model_opset_unsupported
 */
export async function planCompression(
  modelPath: string,
  options: PlanOptions,
  revision = firstPlan,
): Promise<CompressionPlan> {
  const { recipe, target, maxModelBytes = Number.MAX_SAFE_INTEGER } = options;
  checkRecipe(recipe, target);
  const model = await openModel(modelPath, { maxBytes: maxModelBytes });
  normalizeGraph(model);
  const rewrite = new GraphRewrite(model);
  const weights =
    recipe.scheme === "fp16"
      ? convertToHalf(rewrite, recipe, revision)
      : quantizeWeights(rewrite, recipe, revision);
  rewrite.apply();
  const shards = planShards(model, maxShardBytes(options));
  const layout = layoutModel(model, {
    name: "model",
    shards: shards.count,
    assignShard: (payload) => shards.shardByPayload.get(payload) ?? 0,
  });
  const resultBytes = layout.files.reduce((sum, file) => sum + file.bytes, 0);
  const { bytes: originalBytes } = model;
  const { scheme } = recipe;
  const { tasks } = rewrite;
  return { scheme, model, weights, tasks, shards, layout, originalBytes, resultBytes };
}

function maxShardBytes({ kind, recipe }: PlanOptions): number {
  return kind === "compress" ? recipe.sharding.maxShardBytes : Number.MAX_SAFE_INTEGER;
}

function convertToHalf(
  rewrite: GraphRewrite,
  recipe: Recipe,
  { rejected }: PlanRevision,
): readonly WeightPlan[] {
  const { model } = rewrite;
  raiseVersions(model.proto, minFloat16Opset);
  const plan = planHalfPrecision(model, findWeights(model), { recipe, rejected });
  checkAnyFormat(plan.weights, recipe);
  writeHalfPrecision(rewrite, plan);
  return plan.weights;
}

function quantizeWeights(
  rewrite: GraphRewrite,
  recipe: Recipe,
  { rejected, folded }: PlanRevision,
): readonly WeightPlan[] {
  const { model } = rewrite;
  const preferred = planWeights(findWeights(model), recipe, rejected);
  checkAnyFormat(preferred, recipe);
  const plans = preferred.map((plan) => {
    const reason = folded.get(plan.weight.index);
    return reason === undefined ? plan : { ...foldPlan(plan), reason };
  });
  // Plans of all revisions have one opset, so that they differ in nothing else.
  const opsets = [...preferred, ...preferred.map(foldPlan)].map(({ format }) => format?.opset ?? 0);
  raiseVersions(
    model.proto,
    opsets.reduce((highest, opset) => Math.max(highest, opset), 0),
  );
  for (const { weight, format } of plans) {
    if (format !== undefined) writeFormat(rewrite, weight, format);
  }
  return plans;
}

/** The plan with the format that costs nothing when the model runs, where there is one. */
function foldPlan(plan: QuantizedWeightPlan): QuantizedWeightPlan {
  const { weight, format } = plan;
  return { ...plan, format: format && (planFoldedFormat(weight, format) ?? format) };
}

function checkRecipe({ scheme, granularity, operators }: Recipe, target: Target): void {
  if (operators === "contrib" && target.operators === "standard") {
    const available = `target "${target.name}" has the standard ones alone`;
    throw new ServiceError(
      "recipe_unsupported",
      `The recipe asks for contrib operators, and ${available}`,
    );
  }
  const allowed = granularitiesByScheme[scheme];
  if (!allowed.includes(granularity)) {
    const options = allowed.map((name) => `"${name}"`).join(" or ");
    throw new ServiceError(
      "recipe_unsupported",
      `Scheme "${scheme}" has granularity "${granularity}", and may have ${options}`,
    );
  }
}

/** Raises the operator set and, where it is too low for that, the IR version. */
function raiseVersions(proto: ModelProto, opset: number): void {
  raiseOpset(proto, opset);
  const needed = BigInt(minimumIrVersion(standardOpset(proto.opsetImport) ?? 1));
  if (proto.irVersion < needed) proto.irVersion = needed;
}

/** Puts weights beside the operators that use them. */
function normalizeGraph(model: OnnxModel): void {
  inlineFunctions(model.proto);
}

function checkAnyFormat(plans: readonly WeightPlan[], recipe: Recipe): void {
  if (plans.every(({ format }) => format === undefined))
    throw nothingToQuantizeError(plans, recipe);
}

function nothingToQuantizeError(weights: readonly WeightPlan[], recipe: Recipe): ServiceError {
  const largest = weights.toSorted((a, b) => b.weight.bytes - a.weight.bytes).slice(0, 3);
  const reasons = largest.map(({ weight, reason }) => `${quoteName(weight.name)} ${reason}`);
  const scope = `none of the model's ${weights.length} weights: ${reasons.join("; ")}`;
  return new ServiceError("nothing_to_quantize", `Scheme "${recipe.scheme}" fits ${scope}`);
}
