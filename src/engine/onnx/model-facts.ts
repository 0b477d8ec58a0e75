import { graphsOf, tensorsOf } from "./graph-tensors.ts";
import { findAttribute } from "./node-attributes.ts";
import { TensorProto_DataType as DataType } from "./onnx_pb.js";
import type { FunctionProto, GraphProto, ModelProto, NodeProto } from "./onnx_pb.js";

const otherFloatTypes: ReadonlySet<number> = new Set([DataType.FLOAT16, DataType.DOUBLE, DataType.BFLOAT16]);

/** Answers about a whole model, each looked for once. */
export class ModelFacts {
  readonly #model: ModelProto;
  readonly #unsetAttributes = new Map<string, boolean>();
  #readNames: ReadonlySet<string> | undefined;
  #hasOtherFloats: boolean | undefined;

  constructor(model: ModelProto) {
    this.#model = model;
  }

  /** Whether any node, graph or function takes a value of the name. */
  isRead(name: string): boolean {
    this.#readNames ??= new Set(this.#bodies().flatMap(readNames));
    return this.#readNames.has(name);
  }

  /** Whether floating-point types other than float32 occur. */
  hasOtherFloats(): boolean {
    this.#hasOtherFloats ??=
      [...tensorsOf(this.#model)].some(({ dataType }) => otherFloatTypes.has(dataType)) ||
      [...graphsOf(this.#model)].some((graph) => graph.input.some(isOtherFloat)) ||
      this.#bodies().some(({ node }) => node.some(makesOtherFloats));
    return this.#hasOtherFloats;
  }

  /** Whether an attribute of a function has no default value and a call of the function leaves it out. */
  mayBeUnset(called: FunctionProto, attribute: string): boolean {
    const key = `${called.domain}\0${called.name}\0${attribute}`;
    const known = this.#unsetAttributes.get(key);
    if (known !== undefined) return known;
    const mayBeUnset =
      !called.attributeProto.some(({ name }) => name === attribute) &&
      this.#bodies().some(({ node }) =>
        node.some((caller) => calls(caller, called) && !findAttribute(caller, attribute)),
      );
    this.#unsetAttributes.set(key, mayBeUnset);
    return mayBeUnset;
  }

  #bodies(): (GraphProto | FunctionProto)[] {
    return [...graphsOf(this.#model), ...this.#model.functions];
  }
}

function calls(node: NodeProto, called: FunctionProto): boolean {
  return node.opType === called.name && node.domain === called.domain;
}

function readNames({ node, output }: GraphProto | FunctionProto): string[] {
  return [
    ...node.flatMap(({ input }) => input),
    ...output.map((value) => (typeof value === "string" ? value : value.name)),
  ];
}

function isOtherFloat({ type }: GraphProto["input"][number]): boolean {
  return type?.value.case === "tensorType" && otherFloatTypes.has(type.value.value.elemType);
}

function makesOtherFloats(node: NodeProto): boolean {
  return node.attribute.some(({ name, i }) => (name === "to" || name === "dtype") && otherFloatTypes.has(Number(i)));
}
