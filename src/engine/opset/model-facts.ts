import { graphsAndFunctions, modelGraphs, modelTensors } from "../onnx/model-traversal.ts";
import { findAttribute } from "../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type { FunctionProto, GraphProto, ModelProto, NodeProto } from "../onnx/onnx_pb.js";

const otherFloatTypes: ReadonlySet<number> = new Set([
  DataType.FLOAT16,
  DataType.DOUBLE,
  DataType.BFLOAT16,
]);

/** Facts about a whole model, each computed once, when it is first needed. */
export class ModelFacts {
  readonly #model: ModelProto;
  readonly #unsetAttributes = new Map<string, boolean>();
  #consumedNames: ReadonlySet<string> | undefined;
  #hasOtherFloats: boolean | undefined;

  constructor(model: ModelProto) {
    this.#model = model;
  }

  /** Whether any node, graph or function uses a value of the name. */
  isConsumed(name: string): boolean {
    this.#consumedNames ??= new Set([...graphsAndFunctions(this.#model)].flatMap(consumedNames));
    return this.#consumedNames.has(name);
  }

  /** Whether floating-point types other than float32 occur. */
  hasOtherFloats(): boolean {
    this.#hasOtherFloats ??=
      [...modelTensors(this.#model)].some(({ dataType }) => otherFloatTypes.has(dataType)) ||
      [...modelGraphs(this.#model)].some((graph) => graph.input.some(isOtherFloat)) ||
      [...graphsAndFunctions(this.#model)].some(({ node }) => node.some(hasOtherFloatAttribute));
    return this.#hasOtherFloats;
  }

  /** Whether an attribute of a function has no default value and a call of it leaves it out. */
  mayBeUnset(called: FunctionProto, attribute: string): boolean {
    const key = `${called.domain}\0${called.name}\0${attribute}`;
    const known = this.#unsetAttributes.get(key);
    if (known !== undefined) return known;
    const mayBeUnset =
      !called.attributeProto.some(({ name }) => name === attribute) &&
      [...graphsAndFunctions(this.#model)].some(({ node }) =>
        node.some((caller) => isCallTo(caller, called) && !findAttribute(caller, attribute)),
      );
    this.#unsetAttributes.set(key, mayBeUnset);
    return mayBeUnset;
  }
}

function isCallTo(node: NodeProto, called: FunctionProto): boolean {
  return node.opType === called.name && node.domain === called.domain;
}

function consumedNames({ node, output }: GraphProto | FunctionProto): string[] {
  return [
    ...node.flatMap(({ input }) => input),
    ...output.map((value) => (typeof value === "string" ? value : value.name)),
  ];
}

function isOtherFloat({ type }: GraphProto["input"][number]): boolean {
  return type?.value.case === "tensorType" && otherFloatTypes.has(type.value.value.elemType);
}

function hasOtherFloatAttribute(node: NodeProto): boolean {
  return node.attribute.some(
    ({ name, i }) => (name === "to" || name === "dtype") && otherFloatTypes.has(Number(i)),
  );
}
