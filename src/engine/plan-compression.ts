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
import { bypassIdentities } from "./quantize/bypass-identities.ts";
import { foldConstants } from "./quantize/fold-constants.ts";
import { findWeights } from "./quantize/find-weights.ts";
import { planHalfPrecision } from "./quantize/half/plan-half-precision.ts";
import { planShards } from "./quantize/plan-shards.ts";
import type { ShardPlan } from "./quantize/plan-shards.ts";
import { planWeights } from "./quantize/formats/plan-weights.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
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
  readonly model: OnnxModel;
  readonly weights: readonly WeightPlan[];
  readonly tasks: readonly WeightTask[];
  readonly shards: ShardPlan;
  readonly layout: ModelLayout;
  readonly originalBytes: number;
  readonly resultBytes: number;
}

/**
 * Plans the compression of a model without reading weights. `rejected` are weights, by index, that
 * fit no form when they were read, and why.
 * @throws ServiceError those of openModel, recipe_unsupported, nothing_to_quantize,
 * model_opset_unsupported
 */
export async function planCompression(
  modelPath: string,
  options: PlanOptions,
  rejected: ReadonlyMap<number, string> = new Map(),
): Promise<CompressionPlan> {
  const { recipe, target, maxModelBytes = Number.MAX_SAFE_INTEGER } = options;
  checkRecipe(recipe, target);
  const model = await openModel(modelPath, { maxBytes: maxModelBytes });
  prepareGraph(model);
  const shards = planShards(model, maxShardBytes(options));
  const { weights, apply } = planRecipe(model, recipe, rejected);
  const rewrite = new GraphRewrite(model);
  apply(rewrite);
  rewrite.apply();
  const layout = layoutModel(model, {
    name: "model",
    shards: shards.count,
    assignShard: (payload) => payloadShard(payload, rewrite, shards),
  });
  const resultBytes = layout.files.reduce((sum, file) => sum + file.bytes, 0);
  const { bytes: originalBytes } = model;
  return { model, weights, tasks: rewrite.tasks, shards, layout, originalBytes, resultBytes };
}

function maxShardBytes({ kind, recipe }: PlanOptions): number {
  return kind === "compress" ? recipe.sharding.maxShardBytes : Number.MAX_SAFE_INTEGER;
}

interface RecipePlan {
  readonly weights: readonly WeightPlan[];
  readonly apply: (rewrite: GraphRewrite) => void;
}

/** Decides what happens to each weight, and raises the model to the opset that this needs. */
function planRecipe(
  model: OnnxModel,
  recipe: Recipe,
  rejected: ReadonlyMap<number, string>,
): RecipePlan {
  if (recipe.scheme === "fp16") raiseVersions(model.proto, minFloat16Opset);
  const candidates = findWeights(model.proto);
  const plan =
    recipe.scheme === "fp16"
      ? planHalfPrecision(model, candidates, { recipe, rejected })
      : planWeights(candidates, recipe, rejected);
  if (plan.weights.every(({ format }) => format === undefined)) {
    throw nothingToQuantizeError(plan.weights, recipe);
  }
  const opsets = plan.weights.map(({ format }) => format?.opset ?? 0);
  raiseVersions(
    model.proto,
    opsets.reduce((highest, opset) => Math.max(highest, opset), 0),
  );
  return plan;
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

/** Moves weights next to the operators that use them. */
function prepareGraph(model: OnnxModel): void {
  inlineFunctions(model.proto);
  if (model.proto.graph !== undefined) bypassIdentities(model.proto.graph);
  foldConstants(model);
}

function payloadShard(payload: number, rewrite: GraphRewrite, shards: ShardPlan): number {
  const origin = rewrite.weightByPayload.get(payload);
  const shard =
    origin === undefined
      ? shards.shardByPayload.get(payload)
      : shards.shardByTensor.get(origin.tensor);
  return shard ?? 0;
}

function nothingToQuantizeError(weights: readonly WeightPlan[], recipe: Recipe): ServiceError {
  const largest = weights.toSorted((a, b) => b.bytes - a.bytes).slice(0, 3);
  const reasons = largest.map(({ weight, reason }) => `${quoteName(weight.name)} ${reason}`);
  const scope = `none of the model's ${weights.length} weights: ${reasons.join("; ")}`;
  return new ServiceError("nothing_to_quantize", `Scheme "${recipe.scheme}" fits ${scope}`);
}
