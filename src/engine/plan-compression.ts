import { ServiceError } from "../contract/errors.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import { requireSupportedRecipe } from "../contract/jobs/resolve-recipe.ts";
import type { JobKind } from "../contract/jobs/status.ts";
import type { Target } from "../contract/jobs/target.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import { layoutModel, type ModelLayout } from "./onnx/layout-model.ts";
import { standardOpset } from "./onnx/node-attributes.ts";
import type { ModelProto } from "./onnx/onnx_pb.js";
import { minimumIrVersion, raiseOpset } from "./opset/raise-opset.ts";
import { inlineFunctions } from "./onnx/inline-functions.ts";
import { isCheckpoint } from "./language/open-language-model.ts";
import { openOriginal } from "./language/open-original.ts";
import type { OnnxModel } from "./onnx/onnx-model.ts";
import { findWeights, type Weight } from "./quantize/find-weights.ts";
import { type Fused, fuseOperators } from "./quantize/fuse-operators.ts";
import { planShards } from "./quantize/plan-shards.ts";
import type { ShardPlan } from "./quantize/plan-shards.ts";
import { chooseFormats } from "./quantize/formats/choose-formats.ts";
import { writeFormats } from "./quantize/formats/write-formats.ts";
import { findDialect } from "./quantize/dialects.ts";
import { findUnfused, type QdqFindings } from "./quantize/formats/find-unfused.ts";
import { firstPlan } from "./quantize/plan-revision.ts";
import { listUnmatchedPatterns } from "./quantize/weight-patterns.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { GraphRewrite } from "./quantize/graph-rewrite.ts";
import type { WeightTask } from "./quantize/tasks/weight-task.ts";

/**
 * Opsets that operators are chosen in: Clip has its limits as inputs from 11 on, and ONNX Runtime
 * for ARM pools values in half precision from 12 on.
 */
const leastOpsets: Readonly<Partial<Record<Recipe["scheme"], number>>> = { fp16: 12 };

export interface PlanOptions {
  readonly kind: JobKind;
  readonly recipe: Recipe;
  readonly target: Target;
  /** Largest sum of the ONNX file and its external data, bytes. */
  readonly maxModelBytes?: number;
}

/**
 * What a compression does to a model, down to the size of every file; no weight is read for it but
 * those of convolutions that other operators are folded into.
 */
export interface CompressionPlan {
  readonly scheme: Recipe["scheme"];
  readonly model: OnnxModel;
  /** The standard operator set that the model was raised to, unless it had a newer one. */
  readonly opset: number;
  /** Operators of the original that others compute too. */
  readonly fused: Fused;
  readonly weights: readonly WeightPlan[];
  /** Inputs with default values that are constants in the result, since what changed has them. */
  readonly fixedInputs: readonly string[];
  /** Patterns of the recipe that match no weight. */
  readonly unmatchedPatterns: readonly string[];
  readonly tasks: readonly WeightTask[];
  /** How the recipe's runtime takes what is rounded by ranges; undefined before they are known. */
  readonly qdq: QdqFindings | undefined;
  readonly shards: ShardPlan;
  readonly layout: ModelLayout;
  readonly originalBytes: number;
  readonly resultBytes: number;
}

/**
 * Plans the compression of a model without reading weights, but for those that operators are folded
 * into.
 * @throws ServiceError those of openOriginal, recipe_unsupported, nothing_to_quantize,
 * model_opset_unsupported
 */
export async function planCompression(
  modelPath: string,
  options: PlanOptions,
  revision = firstPlan,
): Promise<CompressionPlan> {
  const { recipe, target, maxModelBytes = Number.MAX_SAFE_INTEGER } = options;
  requireSupportedRecipe(recipe, target);
  const model = await openOriginal(modelPath, maxModelBytes, target.executionProvider);
  const fused = normalizeGraph(model, recipe);
  const weights = findWeights(model);
  const choose = (of: readonly Weight[]) =>
    chooseFormats({ model, weights: of, recipe, target }, revision);
  const chosen = choose(weights);
  // The graph of a checkpoint for GPUs is in half precision as it is.
  const isHalf = target.executionProvider === "cuda" && isCheckpoint(modelPath);
  if (!isHalf || recipe.scheme !== "fp16") checkAnyFormat(chosen.weights, recipe);
  const raised = raiseModel(model, weights, chosen.opset);
  const plan = raised === weights ? chosen : choose(raised);
  const rewrite = new GraphRewrite(model, revision);
  writeFormats(rewrite, plan);
  const fixedInputs = rewrite.apply();
  const isStatic = recipe.scheme === "int8-static" && revision.ranges.size > 0;
  const qdq = isStatic ? findUnfused(model, findDialect(recipe)) : undefined;
  const shards = planShards(model, maxShardBytes(options));
  const layout = layoutModel(model, {
    name: "model",
    shards: shards.count,
    assignShard: shards.findShard,
  });
  const resultBytes = layout.files.reduce((sum, file) => sum + file.bytes, 0);
  return {
    scheme: recipe.scheme,
    model,
    opset: chosen.opset,
    fused,
    weights: plan.weights,
    fixedInputs,
    unmatchedPatterns: listUnmatchedPatterns(recipe, weights),
    tasks: rewrite.tasks,
    qdq,
    shards,
    layout,
    originalBytes: model.bytes,
    resultBytes,
  };
}

function maxShardBytes({ kind, recipe }: PlanOptions): number {
  return kind === "compress" ? recipe.sharding.maxShardBytes : Number.MAX_SAFE_INTEGER;
}

/**
 * Raises the operator set of a model with its weights, whose positions stay: constants that come
 * with the newer operators are no weights.
 * @returns the weights as the nodes of the newer operators have them
 */
export function raiseModel(
  model: OnnxModel,
  weights: readonly Weight[],
  opset: number,
): readonly Weight[] {
  const { proto } = model;
  const isRaised = (standardOpset(proto.opsetImport) ?? 1) < opset;
  raiseVersions(proto, opset);
  return isRaised ? findWeights(model, new Set(weights.map(({ name }) => name))) : weights;
}

/** Raises the operator set and, where it is too low for that, the IR version. */
function raiseVersions(proto: ModelProto, opset: number): void {
  raiseOpset(proto, opset);
  const needed = BigInt(minimumIrVersion(standardOpset(proto.opsetImport) ?? 1));
  if (proto.irVersion < needed) proto.irVersion = needed;
}

/** From it on an initializer that is listed among the inputs is a default, which callers may replace. */
const firstIrVersionOfDefaults = 4n;

/** Older models list each initializer among the inputs though none can be replaced. */
function removeListedConstants(model: ModelProto): void {
  if (model.irVersion >= firstIrVersionOfDefaults) return;
  model.irVersion = firstIrVersionOfDefaults;
  const { graph } = model;
  if (graph === undefined) return;
  const names = new Set(graph.initializer.map(({ name }) => name));
  graph.input = graph.input.filter(({ name }) => !names.has(name));
}

/**
 * Puts weights beside the operators that use them, in the form that choices look for, and fuses
 * operators.
 */
export function normalizeGraph(model: OnnxModel, recipe: Recipe): Fused {
  const { scheme, operators, overrides, exclude } = recipe;
  const { proto } = model;
  inlineFunctions(proto);
  removeListedConstants(proto);
  const opset = leastOpsets[scheme];
  if (opset !== undefined) raiseVersions(proto, opset);
  const schemes = [scheme, ...(overrides ?? []).map((override) => override.scheme)];
  return fuseOperators(model, { isStatic: schemes.includes("int8-static"), operators, exclude });
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
