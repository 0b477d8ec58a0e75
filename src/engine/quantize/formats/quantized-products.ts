import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { WeightConsumer } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription, QuantizedActivation } from "../graph-rewrite.ts";
import { findProductMatrix, type AxisRange, type ProductMatrix } from "./consumer-matrix.ts";
import { intAttributes } from "./int-attributes.ts";
import { replaceMatrixProduct } from "./replace-matrix-product.ts";
import type { StoredWeight } from "./stored-weight.ts";
import type { AffineStorage, BlockStorage } from "./weight-format.ts";

/** Products by `accuracy_level` 4 round activations to int8, a scale for each block. */
const int8AccuracyLevel = 4;

/**
 * Multiplies int8 values as integers with the activation, which is quantized when the model runs:
 * DynamicQuantizeLinear, MatMulInteger, Cast, Mul; the pattern that ONNX Runtime fuses.
 */
export function multiplyIntegers(
  stored: StoredWeight,
  consumer: WeightConsumer,
  { axis }: AffineStorage,
): void {
  const { rewrite } = stored;
  const matrix = requireProductMatrix(consumer);
  const copied = stored.copyView(consumer);
  const parameter = (name: string) => (axis === null ? name : sliceOutputs(stored, name, matrix.n));
  const weight = {
    quantizedValues: matrix.isTransposed ? stored.transpose(copied) : copied,
    scales: parameter(stored.scales),
    zeroPoints: stored.zeroPoints && parameter(stored.zeroPoints),
  };
  const multiply = (left: string, steps: NodeDescription[]) =>
    addIntegerMatMul(rewrite, { consumer, left, weight }, steps);
  replaceMatrixProduct(rewrite, { use: consumer, elementType: DataType.FLOAT, multiply });
}

function requireProductMatrix(consumer: WeightConsumer): ProductMatrix {
  const matrix = findProductMatrix(consumer);
  if (typeof matrix === "string") throw new TypeError(`A planned product ${matrix}`);
  return matrix;
}

/** The part of a tensor, with an entry or row for each output, that a consumer takes. */
function sliceOutputs(stored: StoredWeight, name: string, { source, start, size }: AxisRange) {
  const all = Number(stored.weight.tensor.dims[source]);
  return size === all ? name : stored.slice(name, 0, { start, size });
}

interface IntegerProduct {
  readonly consumer: WeightConsumer;
  readonly left: string;
  readonly weight: Pick<StoredWeight, "quantizedValues" | "scales" | "zeroPoints">;
}

function addIntegerMatMul(
  rewrite: GraphRewrite,
  { consumer, left, weight }: IntegerProduct,
  steps: NodeDescription[],
): string {
  const allocate = (part: string) => rewrite.names.allocate(`${consumer.node.output[0]}_${part}`);
  const activation = quantizeActivation(rewrite, { consumer, name: left }, steps);
  const [sums, numbers] = [allocate("sums"), allocate("numbers")];
  const [scales, product] = [allocate("scales"), allocate("product")];
  const zeroPoints = weight.zeroPoints === undefined ? [] : [weight.zeroPoints];
  const values = [activation.quantizedValues, weight.quantizedValues];
  const attribute = intAttributes({ to: DataType.FLOAT });
  steps.push(
    {
      opType: "MatMulInteger",
      input: [...values, activation.zeroPoint, ...zeroPoints],
      output: [sums],
    },
    { opType: "Cast", input: [sums], output: [numbers], attribute },
    { opType: "Mul", input: [activation.scale, weight.scales], output: [scales] },
    { opType: "Mul", input: [numbers, scales], output: [product] },
  );
  return product;
}

/** Quantizes an activation once for all its users in a body. */
function quantizeActivation(
  rewrite: GraphRewrite,
  { consumer: { scope }, name }: { consumer: WeightConsumer; name: string },
  steps: NodeDescription[],
): QuantizedActivation {
  const { body } = scope;
  const byName = rewrite.quantizedActivations.get(body) ?? new Map<string, QuantizedActivation>();
  rewrite.quantizedActivations.set(body, byName);
  const existing = byName.get(name);
  if (existing !== undefined) return existing;
  const activation = {
    quantizedValues: rewrite.names.allocate(`${name}_quantized`),
    scale: rewrite.names.allocate(`${name}_scale`),
    zeroPoint: rewrite.names.allocate(`${name}_zero_point`),
  };
  byName.set(name, activation);
  const output = [activation.quantizedValues, activation.scale, activation.zeroPoint];
  steps.push({ opType: "DynamicQuantizeLinear", input: [name], output });
  return activation;
}

/** Multiplies by ONNX Runtime's MatMulNBits. */
export function multiplyBlocks(
  stored: StoredWeight,
  consumer: WeightConsumer,
  { shape: { k }, format: { bits, blockSize } }: BlockStorage,
): void {
  const { rewrite } = stored;
  rewrite.requireContribOperators();
  const { n } = requireProductMatrix(consumer);
  const inputs = [stored.quantizedValues, stored.scales, stored.zeroPoints].flatMap((name) =>
    name === undefined ? [] : [sliceOutputs(stored, name, n)],
  );
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
  const { elementType } = consumer.view;
  replaceMatrixProduct(rewrite, { use: consumer, elementType, multiply });
}

/** Gathers rows by ONNX Runtime's GatherBlockQuantized. */
export function gatherBlocks(
  stored: StoredWeight,
  { node }: WeightConsumer,
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
    input: [values, indices, stored.scales, ...parameters],
    output: node.output,
    attribute: intAttributes({ bits, block_size: blockSize, gather_axis: 0, quantize_axis: 1 }),
  };
  rewrite.replaceNode(node, [gather]);
}
