import type { GraphProto } from "../onnx/onnx_pb.js";
import { openModel } from "../onnx/open-model.ts";

/**
 * Outputs of a model's file between 0 and 1 by their operator, in the graph or in branches of it:
 * all their values can be near one end.
 */
export async function findBoundedOutputs(modelPath: string): Promise<ReadonlySet<string>> {
  const { graph } = (await openModel(modelPath, Number.MAX_SAFE_INTEGER)).proto;
  if (graph === undefined) return new Set();
  return new Set(graph.output.flatMap(({ name }) => (isBounded(graph, name, 0) ? [name] : [])));
}

const passing: ReadonlySet<string> = new Set([
  "Identity",
  "Cast",
  "Reshape",
  "Flatten",
  "Squeeze",
  "Unsqueeze",
  "Transpose",
  "Slice",
  "ReduceMean",
  "Resize",
]);
const bounded: ReadonlySet<string> = new Set(["Sigmoid", "HardSigmoid", "Softmax"]);
const maxSteps = 32;

function isBounded(graph: GraphProto, value: string, steps: number): boolean {
  const node = graph.node.find(({ output }) => output.includes(value));
  if (node === undefined || steps > maxSteps) return false;
  if (bounded.has(node.opType)) return true;
  if (node.opType === "If") {
    const at = node.output.indexOf(value);
    const branches = node.attribute.flatMap(({ g }) => (g === undefined ? [] : [g]));
    return branches.some((branch) => isBounded(branch, branch.output[at]?.name ?? "", steps + 1));
  }
  return passing.has(node.opType) && isBounded(graph, node.input[0] ?? "", steps + 1);
}
