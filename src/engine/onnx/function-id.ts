import { isStandardDomain } from "./standard-domain.ts";

interface FunctionName {
  readonly domain: string;
  readonly name: string;
  readonly overload: string;
}

/** Identifies a model-local function, and the function that a node may call. */
export function functionId({ domain, name, overload }: FunctionName): string {
  return [isStandardDomain({ domain }) ? "" : domain, name, overload].join("\0");
}

/** The id that the function has that a node calls, if it calls one. */
export function calledFunctionId(node: Omit<FunctionName, "name"> & { opType: string }): string {
  return functionId({ ...node, name: node.opType });
}
