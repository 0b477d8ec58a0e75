import { create } from "@bufbuild/protobuf";
import { countElements } from "../onnx/tensor-shape.ts";
import { floatTypes } from "../onnx/element-type.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType, TensorProtoSchema } from "../onnx/onnx_pb.js";
import type { NodeProto, SparseTensorProto, TensorProto } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";
import { extendView, identityView, type ConstantView } from "./constant-view.ts";
import { GraphIndex } from "./graph-index.ts";
import type { GraphValue, Scope, ValueUse } from "./graph-index.ts";

/** A node that takes a weight, or what other nodes make of it by moving its elements. */
export interface WeightConsumer extends ValueUse {
  readonly view: ConstantView;
}

/** A constant tensor of floating-point numbers: an initializer, or the value of a Constant node. */
export interface Weight {
  /** Position among the model's weights. */
  readonly index: number;
  readonly name: string;
  readonly tensor: TensorProto;
  readonly bytes: number;
  readonly scope: Scope;
  /** The Constant node whose value the weight is; undefined for an initializer. */
  readonly constantNode: NodeProto | undefined;
  /** Nodes that take the weight itself. */
  readonly uses: readonly ValueUse[];
  /** Operators that compute with the weight; none of them only moves elements. */
  readonly consumers: readonly WeightConsumer[];
  /** Nodes that only move elements of this weight. */
  readonly viewNodes: readonly NodeProto[];
  /** Whether the weight or a view of it is an output of a graph. */
  readonly isOutput: boolean;
  readonly isSparse: boolean;
}

/** Nodes in a row that are followed from a weight; hostile graphs have any number. */
const maxViewNodes = 16;
/** Consumers of all weights that are found through other nodes. */
const maxConsumers = 1_000_000;
/** Most integers of a constant that says how elements move. */
const maxIntegers = 64;

/**
 * Finds every weight of a model, in subgraphs and functions too, with every node that uses it.
 * @param among names that weights have where not every constant is to be one
 */
export function findWeights(model: OnnxModel, among?: ReadonlySet<string>): Weight[] {
  const finder = new WeightFinder(model);
  return finder.find(among);
}

class WeightFinder {
  readonly #model: OnnxModel;
  readonly #index: GraphIndex;
  #consumers = 0;

  constructor(model: OnnxModel) {
    this.#model = model;
    this.#index = new GraphIndex(model.proto);
  }

  find(among?: ReadonlySet<string>): Weight[] {
    const weights: Weight[] = [];
    for (const value of this.#index.values) {
      if (among?.has(value.name) === false) continue;
      const tensor = value.constant ?? describeSparse(value);
      if (tensor === undefined || !floatTypes.has(tensor.dataType)) continue;
      weights.push(this.#describeWeight(value, tensor, weights.length));
    }
    return weights;
  }

  #describeWeight(value: GraphValue, tensor: TensorProto, index: number): Weight {
    const { name, scope, producer: constantNode, uses } = value;
    const found = { consumers: new Array<WeightConsumer>(), viewNodes: new Set<NodeProto>() };
    const seen = new Set<GraphValue>([value]);
    const isOutput = this.#follow(value, identityView(tensorDims(tensor), tensor.dataType), {
      ...found,
      seen,
    });
    return {
      index,
      name,
      tensor,
      bytes: value.sparse === undefined ? tensorByteLength(tensor) : sparseBytes(value.sparse),
      scope,
      constantNode,
      uses,
      consumers: found.consumers,
      viewNodes: [...found.viewNodes],
      isOutput,
      isSparse: value.sparse !== undefined,
    };
  }

  /** Collects the consumers of a value. @returns whether it or a view of it is an output */
  #follow(value: GraphValue, view: ConstantView, found: Found): boolean {
    let { isOutput } = value;
    for (const use of value.uses) {
      const outputs = this.#findViews(use, view);
      if (outputs === undefined) {
        found.consumers.push({ ...use, view });
        this.#consumers += 1;
        continue;
      }
      if (!view.isJoined && use.node.opType !== "Concat") found.viewNodes.add(use.node);
      for (const [output, next] of outputs) {
        if (found.seen.has(output)) continue;
        found.seen.add(output);
        isOutput = this.#follow(output, next, found) || isOutput;
      }
    }
    return isOutput;
  }

  /** The views that a node makes of its input; undefined for a node that computes. */
  #findViews(
    { node, input, scope }: ValueUse,
    view: ConstantView,
  ): [GraphValue, ConstantView][] | undefined {
    if (view.nodes.length >= maxViewNodes || this.#consumers > maxConsumers) return undefined;
    const findIntegers = (position: number, attribute: string, absent?: readonly number[]) => {
      const name = node.input[position] ?? "";
      if (name === "") return findAttribute(node, attribute)?.ints.map(Number) ?? absent;
      return this.#readIntegers(this.#index.find(scope, name));
    };
    const views = node.output.flatMap((name, output): [GraphValue, ConstantView][] => {
      const value = this.#index.find(scope, name);
      const next = extendView(view, { node, scope, input, output, findIntegers });
      return value === undefined || next === undefined ? [] : [[value, next]];
    });
    return views.length === 0 ? undefined : views;
  }

  #readIntegers(value: GraphValue | undefined): readonly number[] | undefined {
    const node = value?.constant === undefined ? value?.producer : undefined;
    if (node?.opType === "Constant") return findAttribute(node, "value_ints")?.ints.map(Number);
    const tensor = value?.constant;
    if (tensor === undefined || countElements(tensorDims(tensor)) > maxIntegers) return undefined;
    const { dataType } = tensor;
    if (dataType !== DataType.INT64 && dataType !== DataType.INT32) return undefined;
    const { buffer } = readTensor(this.#model, tensor).slice();
    return dataType === DataType.INT64
      ? Array.from(new BigInt64Array(buffer), Number)
      : [...new Int32Array(buffer)];
  }
}

/** A sparse initializer as a tensor without its content. */
function describeSparse({ name, sparse }: GraphValue): TensorProto | undefined {
  if (sparse === undefined) return undefined;
  return create(TensorProtoSchema, {
    name,
    dims: sparse.dims,
    dataType: sparse.values?.dataType ?? 0,
  });
}

function sparseBytes({ values, indices }: SparseTensorProto): number {
  const tensors = [values, indices].filter((tensor) => tensor !== undefined);
  return tensors.reduce((sum, tensor) => sum + tensorByteLength(tensor), 0);
}

interface Found {
  readonly consumers: WeightConsumer[];
  readonly viewNodes: Set<NodeProto>;
  readonly seen: Set<GraphValue>;
}

function tensorDims({ dims }: TensorProto): number[] {
  return dims.map(Number);
}

export function weightDims({ tensor }: Weight): number[] {
  return tensorDims(tensor);
}
