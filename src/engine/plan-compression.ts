import { ServiceError } from "../contract/errors.ts";
import { granularitiesByScheme, type Recipe } from "../contract/recipe.ts";
import type { JobKind } from "../contract/status.ts";
import type { Target } from "../contract/target.ts";
import { quoteName } from "./onnx/quote-name.ts";
import { layoutModel } from "./onnx/layout-model.ts";
import type { ModelLayout } from "./onnx/model-layout.ts";
import { standardOpset } from "./onnx/standard-domain.ts";
import type { ModelProto } from "./onnx/onnx_pb.js";
import { minimumIrVersion, raiseOpset } from "./onnx/raise-opset.ts";
import { inlineFunctions } from "./onnx/inline-functions.ts";
import { openModel } from "./onnx/open-model.ts";
import type { OnnxModel } from "./onnx/onnx-model.ts";
import { bypassIdentities } from "./quantize/bypass-identities.ts";
import { foldConstants } from "./quantize/fold-constants.ts";
import { findWeights } from "./quantize/find-weights.ts";
import { planHalfPrecision } from "./quantize/half/plan-half-precision.ts";
import { planShards } from "./quantize/plan-shards.ts";
import type { ShardPlan } from "./quantize/plan-shards.ts";
import { planWeights } from "./quantize/plan-weights.ts";
import type { WeightPlan } from "./quantize/plan-weights.ts";
import { GraphRewrite } from "./quantize/graph-rewrite.ts";
import type { WeightTask } from "./quantize/weight-task.ts";

/** First version whose Clip takes its limits as inputs. */
const minFloat16Opset = 11;

export interface PlanOptions {
  readonly kind: JobKind;
  readonly recipe: Recipe;
  readonly target: Target;
  /** Largest sum of the ONNX file and its external data, bytes. */
  readonly maxModelBytes?: number;
}

/** What will become of a model, down to the size of every file, before any weight was read. */
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
 * Plans the compression of a model with no weight read. `rejected` are weights, by index, that a former run found to fit no form.
 * @throws ServiceError those of openModel, recipe_unsupported, nothing_to_quantize, model_opset_unsupported
 */
export async function planCompression(
  modelPath: string,
  options: PlanOptions,
  rejected: ReadonlyMap<number, string> = new Map(),
): Promise<CompressionPlan> {
  const { recipe, target, kind, maxModelBytes = Number.MAX_SAFE_INTEGER } = options;
  checkRecipe(recipe, target);
  const model = await openModel(modelPath, { maxBytes: maxModelBytes });
  prepareGraph(model);
  const shards = planShards(
    model,
    kind === "compress" ? recipe.sharding.maxShardBytes : Number.MAX_SAFE_INTEGER,
  );
  if (recipe.scheme === "fp16") raiseVersions(model.proto, minFloat16Opset);
  const candidates = findWeights(model.proto);
  const { weights, apply } =
    recipe.scheme === "fp16"
      ? planHalfPrecision(model, candidates, { recipe, rejected })
      : planWeights(candidates, recipe, rejected);
  if (weights.every(({ format }) => format === undefined))
    throw nothingToQuantizeError(weights, recipe);
  const opset = weights.reduce((highest, { format }) => Math.max(highest, format?.opset ?? 0), 0);
  raiseVersions(model.proto, opset);
  const rewrite = new GraphRewrite(model);
  apply(rewrite);
  rewrite.apply();
  const layout = layoutModel(model, {
    name: "model",
    shards: shards.count,
    assignShard: (payload) => payloadShard(payload, rewrite, shards),
  });
  const resultBytes = layout.files.reduce((sum, file) => sum + file.bytes, 0);
  return {
    model,
    weights,
    tasks: rewrite.tasks,
    shards,
    layout,
    originalBytes: model.bytes,
    resultBytes,
  };
}

function checkRecipe({ scheme, granularity, operators }: Recipe, target: Target): void {
  if (operators === "contrib" && target.operators === "standard") {
    throw new ServiceError(
      "recipe_unsupported",
      `The recipe asks for contrib operators, and target "${target.name}" has the standard ones alone`,
    );
  }
  const allowed = granularitiesByScheme[scheme];
  if (!allowed.includes(granularity)) {
    throw new ServiceError(
      "recipe_unsupported",
      `Scheme "${scheme}" has granularity "${granularity}", and may have "${allowed.join(`" or "`)}"`,
    );
  }
}

/** Raises the operator set and, where it is behind, the IR version that has to go with it. */
function raiseVersions(proto: ModelProto, opset: number): void {
  raiseOpset(proto, opset);
  const needed = BigInt(minimumIrVersion(standardOpset(proto.opsetImport) ?? 1));
  if (proto.irVersion < needed) proto.irVersion = needed;
}

/** Brings weights next to the operators that use them. */
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
  return new ServiceError(
    "nothing_to_quantize",
    `Scheme "${recipe.scheme}" fits none of the model's ${weights.length} weights: ${reasons.join("; ")}`,
  );
}
