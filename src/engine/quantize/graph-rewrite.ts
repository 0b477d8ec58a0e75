import { create } from "@bufbuild/protobuf";
import { sortNodes, sortTopologically } from "../onnx/sort-nodes.ts";
import { graphsAndFunctions, outermostGraphs } from "../onnx/model-traversal.ts";
import { nodeWith } from "../onnx/node-attributes.ts";
import {
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
} from "../onnx/onnx_pb.js";
import type { AttributeProto, ModelProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { addComputedTensor, payloadIndex } from "../onnx/payload.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { UniqueNames } from "../onnx/names.ts";
import type { Weight } from "./find-weights.ts";
import { GraphIndex, type Scope } from "./graph-index.ts";
import type { PlanRevision } from "./plan-revision.ts";
import type { WeightTask } from "./tasks/weight-task.ts";

export interface NodeDescription {
  readonly opType: string;
  readonly domain?: string;
  readonly name?: string;
  readonly input: string[];
  readonly output: string[];
  readonly attribute?: AttributeProto[];
}

interface TensorDescription {
  readonly name: string;
  readonly dims: readonly number[];
  readonly dataType: number;
  readonly bytes: number;
}

/** Names of the three results of a DynamicQuantizeLinear. */
export interface QuantizedActivation {
  readonly quantizedValues: string;
  readonly scale: string;
  readonly zeroPoint: string;
}

/** Names of a weight's quantized tensors, as an operator takes them. */
export interface QuantizedMatrix {
  readonly quantizedValues: string;
  readonly scales: string;
  readonly zeroPoints: string;
}

type Body = Scope["body"];

/** Collects the changes to a model's graphs while weights are replaced, and applies them all. */
export class GraphRewrite {
  readonly model: OnnxModel;
  readonly names: UniqueNames;
  readonly tasks: WeightTask[] = [];
  /** Activations that are quantized at run time, by the body and name of the value. */
  readonly quantizedActivations = new Map<Body, Map<string, QuantizedActivation>>();
  /** Activations that are divided by the scales of their channels, by the name of the value. */
  readonly smoothedInputs = new Map<string, string>();
  /** Activations followed by the sums of their blocks, by the value's name and the block size. */
  readonly joinedSums = new Map<string, string>();
  /** Weights that recurrent nodes take quantized, by the input. */
  readonly recurrentWeights = new Map<NodeProto, Map<number, QuantizedMatrix>>();
  /** Activations that are rounded by their ranges, by the name of the value. */
  readonly roundedActivations = new Map<string, string>();
  /** Names of the scale and the zero point that a value is rounded by, by its name. */
  readonly activationParameters = new Map<string, readonly string[]>();
  /** Names of the zero points of activations, by type and number. */
  readonly zeroPoints = new Map<string, string>();
  readonly activationRanges: PlanRevision["ranges"];
  readonly inputMeans: PlanRevision["inputMeans"];
  /** Of the model before it is changed. */
  readonly index: GraphIndex;
  readonly #prepended = new Map<Body, NodeProto[]>();
  readonly #replaced = new Map<NodeProto, NodeProto[]>();
  readonly #dropped = new Map<Body, Set<TensorProto>>();
  readonly #constants = new Map<Body, Set<string>>();
  #requiresContribOperators = false;

  constructor(model: OnnxModel, { ranges, inputMeans }: PlanRevision) {
    this.model = model;
    this.activationRanges = ranges;
    this.inputMeans = inputMeans;
    this.names = UniqueNames.forModel(model.proto);
    this.index = new GraphIndex(model.proto);
  }

  /** Makes the model import ONNX Runtime's own operators. */
  requireContribOperators(): void {
    this.#requiresContribOperators = true;
  }

  /** Puts a node before all others of a body. */
  prependNode(body: Body, node: NodeDescription): void {
    this.prependCopy(body, this.#createNode(node));
  }

  /** Puts a node that is complete before all others of a body. */
  prependCopy(body: Body, node: NodeProto): void {
    const nodes = this.#prepended.get(body) ?? [];
    this.#prepended.set(body, nodes);
    nodes.push(node);
  }

  removeNode(node: NodeProto): void {
    this.#replaced.set(node, []);
  }

  /** Puts nodes in the place of one. The last takes its name. */
  replaceNode(node: NodeProto, nodes: readonly NodeDescription[]): void {
    this.#replaced.set(
      node,
      nodes.map((added, index) =>
        this.#createNode(index === nodes.length - 1 ? { ...added, name: node.name } : added),
      ),
    );
  }

  /** Puts a changed copy of a node in its place, with others before and after it. */
  replaceWithCopy(
    node: NodeProto,
    {
      before,
      changes,
      after,
    }: {
      before: NodeDescription[];
      changes: Parameters<typeof nodeWith>[1];
      after: NodeDescription[];
    },
  ): void {
    const added = (nodes: NodeDescription[]) =>
      nodes.map((description) => this.#createNode(description));
    this.#replaced.set(node, [...added(before), nodeWith(node, changes), ...added(after)]);
  }

  /**
   * Adds a constant tensor whose content will be computed from a weight, to the weight's body.
   * @returns the index of its payload
   */
  addComputedTensor(weight: Weight, { bytes, ...shape }: TensorDescription): number {
    const tensor = addComputedTensor(this.model, shape, bytes);
    this.addConstantTensor(weight.scope.body, tensor);
    const index = payloadIndex(tensor);
    if (index === undefined) throw new TypeError("A computed tensor has no payload");
    return index;
  }

  addConstantTensor(body: Body, tensor: TensorProto): void {
    if (body.$typeName === "onnx.GraphProto") {
      body.initializer.push(tensor);
    } else {
      const value = create(AttributeProtoSchema, {
        name: "value",
        type: AttributeType.TENSOR,
        t: tensor,
      });
      this.prependNode(body, {
        opType: "Constant",
        input: [],
        output: [tensor.name],
        attribute: [value],
      });
    }
  }

  /** Removes the weight itself from its graph. */
  removeWeight({
    name,
    scope,
    tensor,
    constantNode,
  }: Pick<Weight, "name" | "scope" | "tensor" | "constantNode">): void {
    if (constantNode !== undefined) {
      this.removeNode(constantNode);
      return;
    }
    this.makeConstant(scope, name);
    const { body } = scope;
    const tensors = this.#dropped.get(body) ?? new Set();
    this.#dropped.set(body, tensors);
    tensors.add(tensor);
  }

  /** Lets callers no longer replace a value that the changes are made for, if it is a default. */
  makeConstant(scope: Scope, name: string): void {
    for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) {
      const names = this.#constants.get(at.body) ?? new Set();
      this.#constants.set(at.body, names.add(name));
    }
  }

  /**
   * Applies the changes, and sorts nodes.
   * @returns the inputs with default values that are constants now
   */
  apply(): string[] {
    const fixedInputs = this.#takeDefaultsFromInputs();
    for (const [body, tensors] of this.#dropped) {
      if (body.$typeName !== "onnx.GraphProto") continue;
      body.initializer = body.initializer.filter((tensor) => !tensors.has(tensor));
    }
    for (const body of graphsAndFunctions(this.model.proto)) {
      const nodes = body.node.flatMap((node) => this.#replaced.get(node) ?? [node]);
      body.node = [...(this.#prepended.get(body) ?? []), ...nodes];
    }
    for (const graph of outermostGraphs(this.model.proto)) sortNodes(graph);
    for (const body of this.model.proto.functions) body.node = sortTopologically(body.node);
    for (const body of graphsAndFunctions(this.model.proto)) dropLostTypes(body);
    if (this.#requiresContribOperators) importContribOperators(this.model.proto);
    return fixedInputs;
  }

  #takeDefaultsFromInputs(): string[] {
    return [...this.#constants].flatMap(([body, names]) => {
      if (body.$typeName !== "onnx.GraphProto") return [];
      const defaults = new Set(body.initializer.map(({ name }) => name));
      for (const { values } of body.sparseInitializer) defaults.add(values?.name ?? "");
      const isFixed = ({ name }: { name: string }) => names.has(name) && defaults.has(name);
      const fixed = body.input.filter(isFixed);
      body.input = body.input.filter((input) => !isFixed(input));
      return fixed.map(({ name }) => name);
    });
  }

  #createNode({ name, output, opType, ...rest }: NodeDescription): NodeProto {
    return create(NodeProtoSchema, {
      ...rest,
      opType,
      output,
      name:
        name === undefined || name === "" ? this.names.allocate(`${output[0]}_${opType}`) : name,
    });
  }
}

/** Drops the declared types of values that are gone: fused away, or weights that were replaced. */
function dropLostTypes(body: Body): void {
  const names = new Set(body.node.flatMap(({ output }) => output));
  for (const input of body.input) names.add(typeof input === "string" ? input : input.name);
  const initializers = body.$typeName === "onnx.GraphProto" ? body.initializer : [];
  for (const { name } of initializers) names.add(name);
  body.valueInfo = body.valueInfo.filter(({ name }) => names.has(name));
}

/** Makes a model and its functions import ONNX Runtime's own operators. */
export function importContribOperators(model: ModelProto): void {
  for (const { opsetImport } of [model, ...model.functions]) {
    if (opsetImport.some(({ domain }) => domain === "com.microsoft")) continue;
    opsetImport.push(create(OperatorSetIdProtoSchema, { domain: "com.microsoft", version: 1n }));
  }
}
