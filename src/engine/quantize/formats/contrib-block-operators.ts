import type { WeightConsumer } from "../find-weights.ts";
import type { NodeDescription } from "../graph-rewrite.ts";
import type { BlockStorage } from "../weight-format.ts";
import { requireProductMatrix } from "./consumer-matrix.ts";
import { intAttributes } from "./int-attributes.ts";
import { replaceMatrixProduct } from "./replace-matrix-product.ts";
import type { StoredWeight } from "./stored-weight.ts";

/** Products by `accuracy_level` 4 round activations to int8, a scale for each block. */
const int8AccuracyLevel = 4;

/** Multiplies by ONNX Runtime's MatMulNBits. */
export function multiplyBlocks(
  stored: StoredWeight,
  consumer: WeightConsumer,
  { shape: { k }, format: { bits, blockSize } }: BlockStorage,
): void {
  const { rewrite } = stored;
  rewrite.requireContribOperators();
  const { n } = requireProductMatrix(consumer);
  const { elementType } = consumer.view;
  const tensors = [stored.quantizedValues, stored.castScales(elementType), stored.zeroPoints];
  const inputs = tensors.flatMap((name) => {
    return name === undefined ? [] : [stored.sliceOutputs(name, n)];
  });
  const attribute = intAttributes({
    K: k,
    N: n.size,
    bits,
    block_size: blockSize,
    accuracy_level: int8AccuracyLevel,
  });
  const multiply = (left: string, steps: NodeDescription[]) => {
    const product = rewrite.names.allocate(`${consumer.node.output[0]}_product`);
    const input = [left, ...inputs];
    const domain = "com.microsoft";
    steps.push({ opType: "MatMulNBits", domain, input, output: [product], attribute });
    return product;
  };
  replaceMatrixProduct(rewrite, { use: consumer, elementType, multiply });
}

/** Gathers rows by ONNX Runtime's GatherBlockQuantized. */
export function gatherBlocks(
  stored: StoredWeight,
  { node, view: { elementType } }: WeightConsumer,
  { shape: { k, n }, format: { bits, blockSize } }: BlockStorage,
): void {
  const { rewrite } = stored;
  rewrite.requireContribOperators();
  const [, indices = ""] = node.input;
  const values = stored.reshape(stored.quantizedValues, [n, (k * bits) / 8]);
  const parameters = stored.zeroPoints === undefined ? [] : [stored.zeroPoints];
  const gather = {
    opType: "GatherBlockQuantized",
    domain: "com.microsoft",
    input: [values, indices, stored.castScales(elementType), ...parameters],
    output: node.output,
    attribute: intAttributes({ bits, block_size: blockSize, gather_axis: 0, quantize_axis: 1 }),
  };
  rewrite.replaceNode(node, [gather]);
}
