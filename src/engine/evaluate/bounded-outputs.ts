import type { GraphProto } from "../onnx/onnx_pb.js";
import { openModel } from "../onnx/open-model.ts";

/** Outputs of a model's file between 0 and 1 by their operator: all can be near one end. */
export async function findBoundedOutputs(modelPath: string): Promise<ReadonlySet<string>> {
  return findOutputsOf(new Set(["Sigmoid", "HardSigmoid", "Softmax"]), modelPath);
}

/** Outputs of a model's file that are the probabilities of a softmax. */
export async function findSoftmaxOutputs(modelPath: string): Promise<ReadonlySet<string>> {
  return findOutputsOf(new Set(["Softmax"]), modelPath);
}

/** Outputs that operators give, in the graph or in branches of it. */
async function findOutputsOf(
  operators: ReadonlySet<string>,
  modelPath: string,
): Promise<ReadonlySet<string>> {
  const { graph } = (await openModel(modelPath, Number.MAX_SAFE_INTEGER)).proto;
  if (graph === undefined) return new Set();
  const names = graph.output.map(({ name }) => name);
  return new Set(names.filter((name) => isResult(operators, { graph, value: name }, 0)));
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
const maxSteps = 32;

function isResult(
  operators: ReadonlySet<string>,
  { graph, value }: { readonly graph: GraphProto; readonly value: string },
  steps: number,
): boolean {
  const node = graph.node.find(({ output }) => output.includes(value));
  if (node === undefined || steps > maxSteps) return false;
  if (operators.has(node.opType)) return true;
  if (node.opType === "If") {
    const at = node.output.indexOf(value);
    const branches = node.attribute.flatMap(({ g }) => (g === undefined ? [] : [g]));
    return branches.some((branch) =>
      isResult(operators, { graph: branch, value: branch.output[at]?.name ?? "" }, steps + 1),
    );
  }
  const source = node.input[0] ?? "";
  return passing.has(node.opType) && isResult(operators, { graph, value: source }, steps + 1);
}
