import type { NodeProto } from "../../onnx/onnx_pb.js";
import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { addHalfWeight } from "../half/add-half-weight.ts";
import { isHalfUse } from "../half/plan-half-format.ts";
import { rewriteToHalf } from "../half/rewrite-to-half.ts";
import type { QuantizedFormat } from "../weight-format.ts";
import { addStorage } from "./add-storage.ts";
import type { FormatPlan } from "./choose-formats.ts";
import { restoreWeight } from "./restore-weight.ts";
import { weightOperations } from "./weight-operations.ts";

/** Replaces weights by the tensors of their formats, and nodes by those that take them. */
export function writeFormats(rewrite: GraphRewrite, { weights, half }: FormatPlan): void {
  const halfWeights = new Map<NodeProto, Map<number, string>>();
  for (const { weight, format } of weights) {
    if (format === undefined) continue;
    const { storage, ...rest } = format;
    if (storage.kind !== "half") {
      writeQuantizedFormat(rewrite, weight, { ...rest, storage });
      continue;
    }
    const name = addHalfWeight(rewrite, weight, storage);
    for (const use of weight.uses.filter((each) => isHalfUse(each, half))) {
      const names = halfWeights.get(use.node) ?? new Map<number, string>();
      halfWeights.set(use.node, names.set(use.input, name));
    }
  }
  const { graph } = rewrite.model.proto;
  if (graph !== undefined && half.nodes.size > 0) {
    rewriteToHalf({ rewrite, choice: half, halfWeights }, graph);
  }
}

function writeQuantizedFormat(
  rewrite: GraphRewrite,
  weight: Weight,
  { storage, operations, restoration }: QuantizedFormat,
): void {
  const stored = addStorage(rewrite, weight, storage);
  if (restoration !== null) restoreWeight(stored, storage, restoration);
  else for (const node of weight.viewNodes) rewrite.removeNode(node);
  for (const [index, consumer] of weight.consumers.entries()) {
    const operation = operations[index] ?? "restore";
    if (operation !== "restore") weightOperations[operation].write(stored, consumer, storage);
  }
}
