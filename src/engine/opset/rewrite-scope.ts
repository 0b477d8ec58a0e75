import { create } from "@bufbuild/protobuf";
import type { ModelFacts } from "./model-facts.ts";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import type { UniqueNames } from "../onnx/names.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import {
  type AttributeProto,
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  type FunctionProto,
  type GraphProto,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProto_DataType as DataType,
  TensorProto_DataType,
  TensorProtoSchema,
  type ValueInfoProto,
} from "../onnx/onnx_pb.js";

/** What the rewrites of a whole model share. */
export interface ModelRewrite {
  readonly facts: ModelFacts;
  readonly names: UniqueNames;
  /** The opset to raise to. */
  readonly targetOpset: number;
}

/** The surroundings of a node to rewrite: known values, and constants that are added for it. */
export class RewriteScope {
  readonly rewrite: ModelRewrite;
  readonly values: KnownValues;
  /** Tensors that become initializers of the graph. */
  readonly initializers: TensorProto[] = [];
  /** Nodes in front of the others: constants in functions, which have no initializers. */
  readonly constantNodes: NodeProto[] = [];
  readonly #body: GraphProto | FunctionProto;
  readonly #outer: RewriteScope | undefined;
  readonly #constants = new Map<string, string>();

  constructor(rewrite: ModelRewrite, body: GraphProto | FunctionProto, outer?: RewriteScope) {
    this.rewrite = rewrite;
    this.values = new KnownValues(body, outer?.values);
    this.#body = body;
    this.#outer = outer;
  }

  /** A scalar or vector of int64 as a value. */
  addInt64Constant(content: number | readonly number[], base: string): string {
    const elements = BigInt64Array.from(listElements(content), BigInt);
    return this.#addConstant(createTensor(content, DataType.INT64, elements), base);
  }

  /** A scalar or vector of float32 as a value. */
  addFloat32Constant(content: number | readonly number[], base: string): string {
    const elements = Float32Array.from(listElements(content));
    return this.#addConstant(createTensor(content, DataType.FLOAT, elements), base);
  }

  /** The content of an attribute as a value: of an int a scalar, of a list a vector. */
  addAttributeConstant(node: NodeProto, attribute: AttributeProto): string {
    const base = `${node.output.find((name) => name !== "") ?? node.opType}_${attribute.name}`;
    if (attribute.refAttrName !== "") return this.#addReferencedAttribute(node, attribute, base);
    return this.addInt64Constant(
      attribute.type === AttributeType.INT ? Number(attribute.i) : attribute.ints.map(Number),
      base,
    );
  }

  /** Declared element type of a float value, else float32 in models with no other float type. */
  floatType(name: string): number | undefined {
    return (
      this.values.find(name)?.elementType ??
      (this.rewrite.facts.hasOtherFloats() ? undefined : DataType.FLOAT)
    );
  }

  #addConstant(tensor: TensorProto, base: string): string {
    const key = `${tensor.dataType} [${tensor.dims.join()}] ${tensor.rawData.join()}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const name = this.rewrite.names.allocate(base);
    this.#constants.set(key, name);
    this.values.addConstant(name, tensor);
    if (this.#body.$typeName === "onnx.GraphProto") {
      tensor.name = name;
      this.initializers.push(tensor);
    } else {
      this.#addConstantNode(
        name,
        create(AttributeProtoSchema, { name: "value", type: AttributeType.TENSOR, t: tensor }),
      );
    }
    return name;
  }

  #addConstantNode(output: string, attribute: AttributeProto): void {
    this.constantNodes.push(
      create(NodeProtoSchema, { opType: "Constant", output: [output], attribute: [attribute] }),
    );
  }

  #addReferencedAttribute(node: NodeProto, attribute: AttributeProto, base: string): string {
    if (this.#mayBeUnset(attribute.refAttrName)) {
      const source = `attribute ${quoteName(attribute.refAttrName)} of a function`;
      const what = `attribute "${attribute.name}" of ${node.opType}`;
      throw new ServiceError(
        "model_opset_unsupported",
        `Cannot make ${what} an input: it is ${source}, which has no default value`,
      );
    }
    const name = this.rewrite.names.allocate(base);
    const form = attribute.type === AttributeType.INT ? "value_int" : "value_ints";
    const { type, refAttrName } = attribute;
    this.#addConstantNode(name, create(AttributeProtoSchema, { name: form, type, refAttrName }));
    return name;
  }

  /** Whether a call of the function that the scope is in may leave the attribute out. */
  #mayBeUnset(name: string): boolean {
    const body = this.#body;
    if (body.$typeName !== "onnx.GraphProto") return this.rewrite.facts.mayBeUnset(body, name);
    return this.#outer === undefined || this.#outer.#mayBeUnset(name);
  }
}

function listElements(content: number | readonly number[]): readonly number[] {
  return typeof content === "number" ? [content] : content;
}

function createTensor(
  content: number | readonly number[],
  dataType: DataType,
  { buffer }: BigInt64Array<ArrayBuffer> | Float32Array<ArrayBuffer>,
): TensorProto {
  const dims = typeof content === "number" ? [] : [BigInt(content.length)];
  return create(TensorProtoSchema, { dims, dataType, rawData: new Uint8Array(buffer) });
}

interface KnownValue {
  readonly elementType?: number | undefined;
  readonly rank?: number | undefined;
  readonly constant?: TensorProto;
}

/** What a graph or function declares about its values: element types, ranks and constants. */
class KnownValues {
  readonly #values = new Map<string, KnownValue>();
  readonly #outer: KnownValues | undefined;

  constructor(body: GraphProto | FunctionProto, outer: KnownValues | undefined) {
    this.#outer = outer;
    const isGraph = body.$typeName === "onnx.GraphProto";
    const inputsAndOutputs = isGraph ? [...body.input, ...body.output] : [];
    for (const info of [...body.valueInfo, ...inputsAndOutputs]) {
      this.#values.set(info.name, declaredValue(info));
    }
    if (isGraph) for (const tensor of body.initializer) this.addConstant(tensor.name, tensor);
    for (const node of body.node) this.#addOutputs(node);
  }

  #addOutputs(node: NodeProto): void {
    const [output] = node.output;
    const tensor = node.opType === "Constant" ? findAttribute(node, "value")?.t : undefined;
    if (tensor !== undefined && output !== undefined) this.addConstant(output, tensor);
    else for (const name of node.output) if (!this.#values.has(name)) this.#values.set(name, {});
  }

  find(name: string): KnownValue | undefined {
    return this.#values.get(name) ?? this.#outer?.find(name);
  }

  addConstant(name: string, tensor: TensorProto): void {
    this.#values.set(name, {
      elementType: tensor.dataType,
      rank: tensor.dims.length,
      constant: tensor,
    });
  }
}

function declaredValue({ type }: ValueInfoProto): KnownValue {
  if (type?.value.case !== "tensorType") return {};
  const { elemType, shape } = type.value.value;
  const isTyped = elemType !== TensorProto_DataType.UNDEFINED;
  return { elementType: isTyped ? elemType : undefined, rank: shape?.dim.length };
}
