import { create } from "@bufbuild/protobuf";
import { sortedNodes } from "../onnx/check-model.ts";
import { bodiesOf } from "../onnx/graph-tensors.ts";
import { nodeWith } from "../onnx/node-attributes.ts";
import {
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
} from "../onnx/onnx_pb.js";
import type { AttributeProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { computedTensor, payloadIndex } from "../onnx/payload.ts";
import type { OnnxModel } from "../onnx/payload.ts";
import { UniqueNames } from "../onnx/unique-names.ts";
import type { Scope, Weight } from "./find-weights.ts";
import type { WeightTask } from "./weight-task.ts";

export interface NewNode {
  readonly opType: string;
  readonly domain?: string;
  readonly name?: string;
  readonly input: string[];
  readonly output: string[];
  readonly attribute?: AttributeProto[];
}

export interface NewTensor {
  readonly name: string;
  readonly dims: readonly number[];
  readonly dataType: number;
  readonly bytes: number;
}

/** Names of the three results of a DynamicQuantizeLinear. */
export interface QuantizedInput {
  readonly codes: string;
  readonly scale: string;
  readonly zeroPoint: string;
}

type Body = Scope["body"];

/** Gathers the changes to a model's graphs while weights are given new forms, and makes them all at once. */
export class Rewrite {
  readonly model: OnnxModel;
  readonly names: UniqueNames;
  readonly tasks: WeightTask[] = [];
  /** Indices of the computed payloads, with the weight they come from. */
  readonly origins = new Map<number, Weight>();
  /** Activations that are quantized at run time, by the body and name of the value. */
  readonly quantizedInputs = new Map<Body, Map<string, QuantizedInput>>();
  readonly #first = new Map<Body, NodeProto[]>();
  readonly #replaced = new Map<NodeProto, NodeProto[]>();
  readonly #dropped = new Map<Body, Set<TensorProto>>();
  #needsContrib = false;

  constructor(model: OnnxModel) {
    this.model = model;
    this.names = UniqueNames.of(model.proto);
  }

  /** Asks for ONNX Runtime's own operators. */
  needContrib(): void {
    this.#needsContrib = true;
  }

  /** Puts a node before all others of a body. */
  addFirst(body: Body, node: NewNode): void {
    const nodes = this.#first.get(body) ?? [];
    this.#first.set(body, nodes);
    nodes.push(this.#node(node));
  }

  /** Puts nodes in the place of one. The last takes its name. */
  replace(node: NodeProto, nodes: readonly NewNode[]): void {
    this.#replaced.set(
      node,
      nodes.map((added, index) => this.#node(index === nodes.length - 1 ? { ...added, name: node.name } : added)),
    );
  }

  /** Puts a changed copy of a node in its place, with others before and after it. */
  surround(
    node: NodeProto,
    { before, changes, after }: { before: NewNode[]; changes: Parameters<typeof nodeWith>[1]; after: NewNode[] },
  ): void {
    const added = (nodes: NewNode[]) => nodes.map((description) => this.#node(description));
    this.#replaced.set(node, [...added(before), nodeWith(node, changes), ...added(after)]);
  }

  /** Makes a constant tensor known in a body whose content will be computed from a weight. @returns its payload's index */
  addComputed(weight: Weight, { bytes, ...shape }: NewTensor): number {
    const tensor = computedTensor(this.model, shape, bytes);
    this.addConstant(weight.scope.body, tensor);
    const index = payloadIndex(tensor);
    if (index === undefined) throw new TypeError("A computed tensor has no payload");
    this.origins.set(index, weight);
    return index;
  }

  addConstant(body: Body, tensor: TensorProto): void {
    if (body.$typeName === "onnx.GraphProto") {
      body.initializer.push(tensor);
    } else {
      const value = create(AttributeProtoSchema, { name: "value", type: AttributeType.TENSOR, t: tensor });
      this.addFirst(body, { opType: "Constant", input: [], output: [tensor.name], attribute: [value] });
    }
  }

  /** Takes the weight itself out of its graph. */
  drop({ scope: { body }, tensor, constant }: Weight): void {
    if (constant !== undefined) {
      this.#replaced.set(constant, []);
      return;
    }
    const tensors = this.#dropped.get(body) ?? new Set();
    this.#dropped.set(body, tensors);
    tensors.add(tensor);
  }

  /** Makes the changes, and puts nodes in order. */
  apply(): void {
    for (const [body, tensors] of this.#dropped) {
      if (body.$typeName !== "onnx.GraphProto") continue;
      body.initializer = body.initializer.filter((tensor) => !tensors.has(tensor));
      const names = new Set([...tensors].map(({ name }) => name));
      body.input = body.input.filter(({ name }) => !names.has(name));
    }
    for (const body of bodiesOf(this.model.proto)) {
      const nodes = body.node.flatMap((node) => this.#replaced.get(node) ?? [node]);
      body.node = sortedNodes([...(this.#first.get(body) ?? []), ...nodes]);
    }
    if (this.#needsContrib) this.#importContrib();
  }

  #importContrib(): void {
    for (const { opsetImport } of [this.model.proto, ...this.model.proto.functions]) {
      if (opsetImport.some(({ domain }) => domain === "com.microsoft")) continue;
      opsetImport.push(create(OperatorSetIdProtoSchema, { domain: "com.microsoft", version: 1n }));
    }
  }

  #node({ name, output, opType, ...rest }: NewNode): NodeProto {
    return create(NodeProtoSchema, {
      ...rest,
      opType,
      output,
      name: name === undefined || name === "" ? this.names.take(`${output[0]}_${opType}`) : name,
    });
  }
}
