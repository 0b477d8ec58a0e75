import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { findAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { ConstantView } from "../constant-view.ts";
import type { Weight, WeightConsumer } from "../find-weights.ts";
import { Obstacle } from "../obstacle.ts";
import type { QuantizedStorage, WeightRestoration } from "../weight-format.ts";
import { findProductMatrix } from "./consumer-matrix.ts";

/** @returns undefined where no restoration fits the recipe */
export function chooseRestoration(
  weight: Weight,
  restored: readonly WeightConsumer[],
  storage: QuantizedStorage,
  { dequantize }: Recipe,
): WeightRestoration | undefined {
  if (storage.kind === "packed-rows" || storage.kind === "offset-blocks") return undefined;
  if (!canDequantize(weight, storage)) return canFold(storage) ? "fold" : undefined;
  if (storage.kind === "packed-blocks") return dequantize === "run" ? undefined : "fold";
  if (isBatched(storage)) return dequantize === "run" ? undefined : "fold";
  if (dequantize === "load-only") return canFold(storage) ? "fold" : undefined;
  if (dequantize === "run" || !canFold(storage)) return "dequantize";
  return restored.every(isFusedProduct) ? "dequantize" : "fold";
}

/** Whether ONNX Runtime fuses the product with a DequantizeLinear of its weight. */
function isFusedProduct(consumer: WeightConsumer): boolean {
  const matrix = findProductMatrix(consumer);
  return !(matrix instanceof Obstacle) && !matrix.isTransposed && consumer.view.nodes.length === 0;
}

/**
 * Whether ONNX Runtime takes a weight from DequantizeLinear on CPUs: it has none in bfloat16, in
 * subgraphs what it makes of one in float16 and a product is 0, and between one with several scales
 * and a Transpose without `perm` it ends the process.
 */
export function canDequantize(
  { tensor: { dataType }, scope, consumers }: Weight,
  storage: QuantizedStorage,
): boolean {
  const hasOneScale = storage.kind === "affine" && storage.axis === null;
  const isReversed = consumers.some(({ view }) => view.nodes.some(isReversal));
  if (isReversed && !hasOneScale) return false;
  if (dataType === DataType.FLOAT16) return scope.outer === undefined;
  return dataType !== DataType.BFLOAT16;
}

function isReversal({ node }: ConstantView["nodes"][number]): boolean {
  return node.opType === "Transpose" && findAttribute(node, "perm") === undefined;
}

/** DequantizeLinear would take the matrices of a batch for one. */
function isBatched(storage: QuantizedStorage): boolean {
  return storage.kind === "affine" ? storage.batchAxes > 0 : storage.matrices > 1;
}

/** Whether nodes can restore the stored weight that runtimes evaluate at load. */
export function canFold(storage: QuantizedStorage): boolean {
  if (storage.kind === "packed-rows" || storage.kind === "offset-blocks") return false;
  return storage.kind !== "linear-blocks" || storage.shape.k % storage.format.blockSize === 0;
}

/** First version of the standard operator set that has the operators of a restoration. */
export function restorationOpset(
  weight: Weight,
  storage: QuantizedStorage,
  restoration: WeightRestoration | null,
): number {
  if (restoration === null) return 0;
  if (storage.kind === "linear-blocks") return 21;
  if (restoration === "fold" && weight.tensor.dataType === DataType.BFLOAT16) return 13;
  if (restoration === "fold") return storage.kind === "packed-blocks" ? 11 : 7;
  if (weight.tensor.dataType !== DataType.FLOAT) return 19;
  return storage.kind === "affine" && storage.axis === null ? 10 : 13;
}
