import { create } from "@bufbuild/protobuf";
import { ServiceError } from "../../contract/errors.ts";
import { KnownValues } from "./known-values.ts";
import { quoteName } from "./external-data.ts";
import type { ModelFacts } from "./model-facts.ts";
import {
  AttributeProto_AttributeType as AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
} from "./onnx_pb.js";
import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  NodeProto,
  TensorProto,
} from "./onnx_pb.js";
import type { UniqueNames } from "./unique-names.ts";

/** What the rewrites of a whole model share. */
export interface ModelRewrite {
  readonly facts: ModelFacts;
  readonly names: UniqueNames;
  /** The opset to raise to. */
  readonly targetOpset: number;
}

/** Where a node to rewrite stands: what is known of the values around it, and where constants for it can be put. */
export class RewriteScope {
  readonly rewrite: ModelRewrite;
  readonly values: KnownValues;
  /** Tensors that become initializers of the graph. */
  readonly initializers: TensorProto[] = [];
  /** Nodes that stand in front of the others: constants in functions, which have no initializers. */
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
    const elements = typeof content === "number" ? [content] : content;
    const rawData = new Uint8Array(BigInt64Array.from(elements, BigInt).buffer);
    const dims = typeof content === "number" ? [] : [BigInt(content.length)];
    return this.#addConstant(
      create(TensorProtoSchema, { dims, dataType: DataType.INT64, rawData }),
      base,
    );
  }

  addFloat32Constant(content: number | readonly number[], base: string): string {
    const elements = typeof content === "number" ? [content] : content;
    const rawData = new Uint8Array(Float32Array.from(elements).buffer);
    const dims = typeof content === "number" ? [] : [BigInt(content.length)];
    return this.#addConstant(
      create(TensorProtoSchema, { dims, dataType: DataType.FLOAT, rawData }),
      base,
    );
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

  /** The element type of a float value where it is declared, or else float32 in models that have no other float type. */
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
      throw new ServiceError(
        "model_opset_unsupported",
        `Cannot make attribute "${attribute.name}" of ${node.opType} an input: it is attribute ${quoteName(attribute.refAttrName)} of a function, which has no default value`,
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
    if (body.$typeName === "onnx.GraphProto")
      return this.#outer === undefined || this.#outer.#mayBeUnset(name);
    return this.rewrite.facts.mayBeUnset(body, name);
  }
}
