import type { ModelProto } from "./onnx_pb.js";

/** Whether a node, function or import is in the domain of the standard operators. */
export function isStandardDomain({ domain }: { readonly domain: string }): boolean {
  return domain === "" || domain === "ai.onnx";
}

/** Version of the standard operator set that a model or function imports. */
export function standardOpset(imports: ModelProto["opsetImport"]): number | undefined {
  const entry = imports.find(isStandardDomain);
  return entry === undefined ? undefined : Number(entry.version);
}
