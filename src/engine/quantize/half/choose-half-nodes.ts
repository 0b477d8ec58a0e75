import { at } from "../../onnx/at.ts";
import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { sortTopologically } from "../../onnx/sort-nodes.ts";
import { nodeSubgraphs } from "../../onnx/model-traversal.ts";
import { TensorProto_DataType as DataType, type NodeProto } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { maxPlannedBytes, readTensor } from "../../onnx/read-tensor.ts";
import { channelAxis, operatorName } from "../channel-axis.ts";
import { type Weight, weightDims } from "../find-weights.ts";
import type { Scope } from "../graph-index.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import { memoize } from "../memoize.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";

/** Largest finite half-precision number, and the smallest that does not become zero. */
export const halfRange = { largest: 65_504, smallest: 2 ** -25 } as const;
/** Constants of more elements are not checked before the work, but while they are converted. */
const maxInspected = maxPlannedBytes / 4;

/** Which nodes work in half precision, and which values are half-precision because of it. */
export interface HalfChoice {
  readonly nodes: ReadonlySet<NodeProto>;
  /** Names of the half-precision values that each body computes. */
  readonly values: ReadonlyMap<Scope["body"], ReadonlySet<string>>;
  /** Values that may lie beyond the range of half precision. */
  readonly wide: ReadonlySet<string>;
}

export const noHalfNodes: HalfChoice = { nodes: new Set(), values: new Map(), wide: new Set() };

/** What becomes of a constant's values that half precision cannot hold. */
type HalfRangeLoss = "overflow" | "underflow";

interface HalfSelection {
  readonly model: OnnxModel;
  readonly recipe: Recipe;
  readonly weightAt: ReadonlyMap<NodeProto, ReadonlyMap<number, Weight>>;
  /** Why a weight must not be in half precision. */
  readonly findObstacle: (weight: Weight) => string | undefined;
  readonly findLoss: (weight: Weight) => HalfRangeLoss | undefined;
  readonly nodes: Set<NodeProto>;
  readonly values: Map<Scope["body"], Set<string>>;
  readonly wide: Set<string>;
}

interface ChooseHalfOptions {
  readonly model: OnnxModel;
  readonly recipe: Recipe;
  readonly weights: readonly Weight[];
  readonly findObstacle: HalfSelection["findObstacle"];
}

/**
 * Chooses the nodes that work in half precision: those with large weights, and from there on all
 * that take their results, as long as the operator and its constants allow it.
 */
export function chooseHalfNodes({
  model,
  recipe,
  weights,
  findObstacle,
}: ChooseHalfOptions): HalfChoice {
  const choosing = {
    model,
    recipe,
    weightAt: indexWeights(weights),
    findObstacle,
    findLoss: memoize((weight: Weight) => findHalfRangeLoss(weight, { model })),
    nodes: new Set<NodeProto>(),
    values: new Map(),
    wide: new Set<string>(),
  };
  const { graph } = model.proto;
  if (graph !== undefined) chooseNodesInBody({ body: graph, outer: undefined }, choosing);
  return choosing;
}

function chooseNodesInBody(scope: Scope, choosing: HalfSelection): void {
  const own = new Set<string>();
  choosing.values.set(scope.body, own);
  for (const node of sortTopologically(scope.body.node)) {
    if (isHalfNode(node, scope, choosing)) {
      choosing.nodes.add(node);
      const outputs = halfOperators.get(node.opType)?.outputs ?? [];
      for (const index of halfPositions(outputs, node.output)) own.add(at(node.output, index));
    } else if (hasWideOperand(node, choosing)) {
      for (const output of node.output) choosing.wide.add(output);
    }
    for (const body of nodeSubgraphs(node)) chooseNodesInBody({ body, outer: scope }, choosing);
  }
}

function indexWeights(weights: readonly Weight[]): Map<NodeProto, Map<number, Weight>> {
  const weightAt = new Map<NodeProto, Map<number, Weight>>();
  for (const weight of weights) {
    for (const { node, input } of weight.uses) {
      weightAt.set(node, (weightAt.get(node) ?? new Map<number, Weight>()).set(input, weight));
    }
  }
  return weightAt;
}

function isHalfNode(node: NodeProto, scope: Scope, choosing: HalfSelection): boolean {
  const operator = halfOperators.get(operatorName(node));
  if (operator === undefined || operator.outputs.length === 0) return false;
  if (node.opType === "BatchNormalization" && node.output.length > 1) return false;
  const weights = choosing.weightAt.get(node);
  let starts = false;
  for (const position of halfPositions(operator.inputs, node.input)) {
    const weight = weights?.get(position);
    if (weight === undefined) starts ||= isHalfValue(at(node.input, position), scope, choosing);
    else if (!canBeHalf(weight, choosing)) return false;
    else starts ||= isLarge(weight, choosing.recipe) && isOperatorWeight(weight);
  }
  return starts;
}

function canBeHalf(weight: Weight, choosing: HalfSelection): boolean {
  const isSingle = weight.tensor.dataType === DataType.FLOAT && !weight.isSparse;
  return (
    isSingle &&
    choosing.findObstacle(weight) === undefined &&
    choosing.findLoss(weight) === undefined
  );
}

function isLarge(weight: Weight, { minElements }: Recipe): boolean {
  return countElements(weightDims(weight)) >= Math.max(1, minElements);
}

function isOperatorWeight({ consumers, tensor }: Weight): boolean {
  return consumers.some(
    (consumer) =>
      channelAxis(consumer, consumer.view.axes?.length ?? tensor.dims.length) !== undefined,
  );
}

/** Whether a value that is visible in a scope is computed in half precision. */
export function isHalfValue(
  name: string,
  scope: Scope,
  { values }: Pick<HalfChoice, "values">,
): boolean {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) {
    if (values.get(at.body)?.has(name) === true) return true;
  }
  return false;
}

function hasWideOperand(node: NodeProto, choosing: HalfSelection): boolean {
  const weights = [...(choosing.weightAt.get(node)?.values() ?? [])];
  return (
    operatorName(node) !== "Softmax" &&
    (node.input.some((name) => choosing.wide.has(name)) ||
      weights.some((weight) => choosing.findLoss(weight) === "overflow"))
  );
}

/**
 * Whether a constant has finite values beyond the range of half precision, or values that would
 * become zero.
 */
export function findHalfRangeLoss(
  weight: Weight,
  { model }: { readonly model: OnnxModel },
): HalfRangeLoss | undefined {
  const { tensor } = weight;
  if (
    weight.isSparse ||
    tensor.dataType !== DataType.FLOAT ||
    countElements(weightDims(weight)) > maxInspected
  )
    return undefined;
  const bytes = readTensor(model, tensor);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let underflow = false;
  for (let offset = 0; offset < bytes.length; offset += 4) {
    const size = Math.abs(view.getFloat32(offset, true));
    if (size > halfRange.largest && size !== Infinity) return "overflow";
    underflow ||= size !== 0 && size <= halfRange.smallest;
  }
  return underflow ? "underflow" : undefined;
}
