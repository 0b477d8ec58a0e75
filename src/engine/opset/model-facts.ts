import { graphsAndFunctions, modelGraphs, modelTensors } from "../onnx/model-traversal.ts";
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
  #consumedNames: ReadonlySet<string> | undefined;
  #hasOtherFloats: boolean | undefined;
  /** Of each function that is called, the attributes that all calls set or that have a default. */
  #setAttributes: ReadonlyMap<string, ReadonlySet<string>> | undefined;

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
    this.#setAttributes ??= findCommonAttributes(this.#model);
    const isSet = this.#setAttributes.get(operatorKey(called.domain, called.name));
    return isSet?.has(attribute) === false;
  }
}

function operatorKey(domain: string, opType: string): string {
  return `${domain}\0${opType}`;
}

/** Attributes of functions that are called; by the function's key. */
function findCommonAttributes(model: ModelProto): Map<string, Set<string>> {
  const functions = new Set(model.functions.map(({ domain, name }) => operatorKey(domain, name)));
  const setByAll = new Map<string, Set<string>>();
  for (const { node } of graphsAndFunctions(model)) {
    for (const { domain, opType, attribute } of node) {
      const key = operatorKey(domain, opType);
      if (!functions.has(key)) continue;
      const names = attribute.map(({ name }) => name);
      const before = setByAll.get(key);
      setByAll.set(key, new Set(before ? names.filter((name) => before.has(name)) : names));
    }
  }
  for (const { domain, name, attributeProto } of model.functions) {
    const names = setByAll.get(operatorKey(domain, name));
    for (const attribute of attributeProto) names?.add(attribute.name);
  }
  return setByAll;
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
