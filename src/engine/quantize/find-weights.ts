import { findAttribute } from "../onnx/node-attributes.ts";
import { nodeSubgraphs } from "../onnx/model-traversal.ts";
import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type {
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  TensorProto,
} from "../onnx/onnx_pb.js";

/** A graph or function body, and the scope around it whose values it may use. */
export interface Scope {
  readonly body: GraphProto | FunctionProto;
  readonly outer: Scope | undefined;
}

export interface WeightUse {
  readonly node: NodeProto;
  /** Index among the node's inputs. */
  readonly input: number;
  readonly scope: Scope;
}

/** A constant tensor of floating-point numbers: an initializer, or the value of a Constant node. */
export interface Weight {
  /** Position among the model's weights. */
  readonly index: number;
  readonly name: string;
  readonly tensor: TensorProto;
  readonly scope: Scope;
  /** The Constant node whose value the weight is; undefined for an initializer. */
  readonly constantNode: NodeProto | undefined;
  readonly uses: WeightUse[];
  /** Whether the weight is an output of a graph. */
  isOutput: boolean;
}

const floatTypes: ReadonlySet<number> = new Set([
  DataType.FLOAT,
  DataType.FLOAT16,
  DataType.BFLOAT16,
  DataType.DOUBLE,
]);

/** Finds every weight of a model, in subgraphs and functions too, with every node that uses it. */
export function findWeights(model: ModelProto): Weight[] {
  const weights: Weight[] = [];
  const bodies = [model.graph, ...model.functions];
  for (const body of bodies) {
    if (body !== undefined) collectWeights({ body, outer: undefined }, () => undefined, weights);
  }
  return weights;
}

/** Gives the weight of a name; undefined for a name that stands for another value. */
type FindWeight = (name: string) => Weight | undefined;

function collectWeights(scope: Scope, findOuter: FindWeight, weights: Weight[]): void {
  const own = collectDefinitions(scope, weights);
  const find: FindWeight = (name) => (own.has(name) ? own.get(name) : findOuter(name));
  for (const node of scope.body.node) {
    for (const [input, name] of node.input.entries()) find(name)?.uses.push({ node, input, scope });
    for (const body of nodeSubgraphs(node)) collectWeights({ body, outer: scope }, find, weights);
  }
  for (const output of scope.body.output) {
    const weight = find(typeof output === "string" ? output : output.name);
    if (weight !== undefined) weight.isOutput = true;
  }
}

/** Finds the values that a body defines: weights, which it appends to the list, and others. */
function collectDefinitions(scope: Scope, weights: Weight[]): Map<string, Weight | undefined> {
  const definitionsByName = new Map<string, Weight | undefined>();
  const add = (name: string, tensor: TensorProto, constantNode?: NodeProto) => {
    const isFloat = floatTypes.has(tensor.dataType);
    const index = weights.length;
    const constant = { index, name, tensor, scope, constantNode, uses: [], isOutput: false };
    if (isFloat) weights.push(constant);
    definitionsByName.set(name, isFloat ? constant : undefined);
  };
  const { body } = scope;
  for (const input of body.input) {
    definitionsByName.set(typeof input === "string" ? input : input.name, undefined);
  }
  if (body.$typeName === "onnx.GraphProto") {
    for (const tensor of body.initializer) add(tensor.name, tensor);
  }
  for (const node of body.node) {
    const tensor = node.opType === "Constant" ? findAttribute(node, "value")?.t : undefined;
    const [output] = node.output;
    if (tensor !== undefined && output !== undefined) add(output, tensor, node);
    else for (const name of node.output) definitionsByName.set(name, undefined);
  }
  return definitionsByName;
}
