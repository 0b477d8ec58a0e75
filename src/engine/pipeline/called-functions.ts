import { calledFunctionId, functionId } from "../onnx/function-id.ts";
import { nestedGraphs } from "../onnx/model-traversal.ts";
import type { FunctionProto, ModelProto, NodeProto } from "../onnx/onnx_pb.js";

/** Functions that nodes call, directly or through others. */
export function calledFunctions(proto: ModelProto, nodes: Iterable<NodeProto>): Set<FunctionProto> {
  const byId = new Map(proto.functions.map((body) => [functionId(body), body]));
  const functions = new Set<FunctionProto>();
  const pending = [...nodes];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    for (const graph of nestedGraphs([node])) pending.push(...graph.node);
    const called = byId.get(calledFunctionId(node));
    if (!called || functions.has(called)) continue;
    functions.add(called);
    pending.push(...called.node);
  }
  return functions;
}
