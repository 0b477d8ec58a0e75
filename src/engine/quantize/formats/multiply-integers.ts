import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { WeightConsumer } from "../find-weights.ts";
import type { GraphRewrite, NodeDescription, QuantizedActivation } from "../graph-rewrite.ts";
import { requireProductMatrix } from "./consumer-matrix.ts";
import { intAttributes } from "../../onnx/node-attributes.ts";
import { replaceMatrixProduct } from "./replace-matrix-product.ts";
import type { StoredWeight } from "./stored-weight.ts";
import type { AffineStorage } from "../weight-format.ts";

/**
 * Multiplies int8 values as integers with the activation, which is quantized when the model runs:
 * DynamicQuantizeLinear, MatMulInteger, Cast, Mul; the pattern that ONNX Runtime fuses.
 */
export function multiplyIntegers(
  stored: StoredWeight,
  consumer: WeightConsumer,
  { axis, inputScales }: AffineStorage,
): void {
  const { rewrite } = stored;
  const matrix = requireProductMatrix(consumer);
  const copied = stored.copyView(consumer);
  const parameter = (name: string) => (axis === null ? name : stored.sliceOutputs(name, matrix.n));
  const scales = parameter(stored.castScales(DataType.FLOAT));
  const weight = {
    quantizedValues: matrix.isTransposed ? stored.transpose(copied) : copied,
    scales,
    zeroPoints: stored.zeroPoints && parameter(stored.zeroPoints),
  };
  const allocate = (part: string) => rewrite.names.allocate(`${consumer.node.output[0]}_${part}`);
  const multiply = (left: string, steps: NodeDescription[]) => {
    const input = inputScales === undefined ? left : rewrite.smoothedInputs.get(left);
    if (input === undefined) throw new TypeError("The input of a smoothed product is not divided");
    const activation = quantizeActivation(rewrite, consumer.scope.body, input, steps);
    return addIntegerMatMul(allocate, activation, weight, steps);
  };
  replaceMatrixProduct(rewrite, { use: consumer, elementType: DataType.FLOAT, multiply });
}

function addIntegerMatMul(
  allocate: (part: string) => string,
  activation: QuantizedActivation,
  weight: Pick<StoredWeight, "quantizedValues" | "scales" | "zeroPoints">,
  steps: NodeDescription[],
): string {
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
  body: WeightConsumer["scope"]["body"],
  name: string,
  steps: NodeDescription[],
): QuantizedActivation {
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
