import type { Weight } from "../find-weights.ts";
import type { GraphRewrite } from "../graph-rewrite.ts";
import { addStorage } from "./add-storage.ts";
import { restoreWeight } from "./restore-weight.ts";
import { weightOperations } from "./weight-operations.ts";
import type { QuantizedFormat } from "../weight-format.ts";

/** Replaces a weight by its quantized tensors, and its consumers by operators that take them. */
export function writeFormat(rewrite: GraphRewrite, weight: Weight, format: QuantizedFormat): void {
  const stored = addStorage(rewrite, weight, format);
  const { storage, operations, restoration } = format;
  if (restoration !== null) restoreWeight(stored, storage, restoration);
  else for (const node of weight.viewNodes) rewrite.removeNode(node);
  for (const [index, consumer] of weight.consumers.entries()) {
    const operation = operations[index] ?? "restore";
    if (operation !== "restore") weightOperations[operation].write(stored, consumer, storage);
  }
}
