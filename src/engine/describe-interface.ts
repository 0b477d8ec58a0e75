import { elementTypeName } from "./onnx/element-type.ts";
import { standardOpset } from "./onnx/node-attributes.ts";
import type { ModelProto, TypeProto, ValueInfoProto } from "./onnx/onnx_pb.js";

/** What a program needs to know to run a model. */
export interface ModelInterface {
  /** Version of the standard operators; null where the model names none. */
  readonly opset: number | null;
  readonly inputs: readonly ModelValue[];
  readonly outputs: readonly ModelValue[];
}

interface ModelValue {
  readonly name: string;
  /** Element type and dimensions, such as `float32[1,3,h,w]`. */
  readonly type: string;
}

/** Of those that a model has more of. */
const listedValues = 32;

export function describeInterface({ opsetImport, graph }: ModelProto): ModelInterface {
  const constants = new Set(graph?.initializer.map(({ name }) => name));
  const inputs = (graph?.input ?? []).filter(({ name }) => !constants.has(name));
  return {
    opset: standardOpset(opsetImport) ?? null,
    inputs: inputs.slice(0, listedValues).map(describeValue),
    outputs: (graph?.output ?? []).slice(0, listedValues).map(describeValue),
  };
}

function describeValue({ name, type }: ValueInfoProto): ModelValue {
  return { name, type: describeType(type) };
}

export function describeType(type: TypeProto | undefined): string {
  if (type?.value.case !== "tensorType") return "no tensor";
  const { elemType, shape } = type.value.value;
  const dims = shape?.dim.map(({ value }) => {
    if (value.case === undefined) return "?";
    return value.case === "dimValue" ? String(value.value) : value.value || "?";
  });
  return `${elementTypeName(elemType)}[${dims?.join(",") ?? "…"}]`;
}
