import { at } from "../../onnx/at.ts";
import { attributesWithout } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType, type NodeProto } from "../../onnx/onnx_pb.js";
import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { isAttributeSet, operatorName } from "../channel-axis.ts";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import type { QuantizedMatrix } from "../graph-rewrite.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import { Obstacle } from "../obstacle.ts";
import type { AffineStorage } from "../weight-format.ts";
import type { StoredWeight } from "./stored-weight.ts";

/** Inputs of an LSTM for its states: B, sequence_lens, initial_h, initial_c, P. */
const stateInputs = [3, 4, 5, 6, 7] as const;

/** Whether a consumer takes a weight [directions, 4 · hidden size, inputs] of an LSTM. */
export function isRecurrentProduct({ node, input }: WeightConsumer): boolean {
  return operatorName(node) === "LSTM" && (input === 1 || input === 2);
}

/** 8-bit values with a scale for each direction and, by default, for each row of it. */
export function planRecurrentStorage(
  weight: Weight,
  granularity: Recipe["granularity"],
  integers: AffineFormat,
): AffineStorage | Obstacle {
  const { length } = weight.tensor.dims;
  if (length !== 3) return new Obstacle(`has ${length} dimensions, and an LSTM takes 3`);
  // DynamicQuantizeLSTM takes no zero points that differ.
  const format = { ...integers, symmetric: true };
  return { kind: "affine", axis: granularity === "tensor" ? null : 1, batchAxes: 1, format };
}

export function findRecurrentObstacle(
  { node, input, view }: WeightConsumer,
  { batchAxes }: AffineStorage,
): Obstacle | undefined {
  const operator = operatorName(node);
  if (operator !== "LSTM") return new Obstacle(`is used by ${operator}, which is not an LSTM`);
  if (input !== 1 && input !== 2) {
    return new Obstacle(`is input ${input} of LSTM, which is not a matrix`);
  }
  if (view.nodes.length > 0) return new Obstacle("is rearranged for LSTM");
  if (view.elementType !== DataType.FLOAT) {
    return new Obstacle("is not float32, the type of quantized LSTMs");
  }
  if (isAttributeSet(node, "layout")) {
    return new Obstacle("is used by an LSTM whose batch comes first");
  }
  return batchAxes === 1 ? undefined : new Obstacle("has one scale for both directions of an LSTM");
}

/**
 * Replaces an LSTM by ONNX Runtime's DynamicQuantizeLSTM, which quantizes inputs and hidden states
 * when it runs, once both of its weights are stored.
 */
export function quantizeLstm(
  stored: StoredWeight,
  { node, input }: WeightConsumer,
  storage: AffineStorage,
): void {
  const { rewrite } = stored;
  const weights = rewrite.recurrentWeights.get(node) ?? new Map<number, QuantizedMatrix>();
  rewrite.recurrentWeights.set(node, weights.set(input, arrangeMatrix(stored, storage)));
  const [ofInputs, ofHidden] = [weights.get(1), weights.get(2)];
  if (ofInputs === undefined || ofHidden === undefined) return;
  rewrite.requireContribOperators();
  const quantized = {
    opType: "DynamicQuantizeLSTM",
    domain: "com.microsoft",
    input: listInputs(node, [ofInputs, ofHidden]),
    output: node.output,
    attribute: attributesWithout(node, "layout"),
  };
  rewrite.replaceNode(node, [quantized]);
}

/** Values [directions, inputs, rows], scales and zero points [directions, rows] or [directions]. */
function arrangeMatrix(stored: StoredWeight, { axis }: AffineStorage): QuantizedMatrix {
  const { zeroPoints } = stored;
  const [directions = 1, rows = 1] = weightDims(stored.weight);
  const dims = axis === null ? [directions] : [directions, rows];
  return {
    quantizedValues: stored.transpose(stored.quantizedValues, [0, 2, 1]),
    scales: stored.reshape(stored.scales, dims),
    zeroPoints: zeroPoints === undefined ? stored.zeros(dims) : stored.reshape(zeroPoints, dims),
  };
}

function listInputs({ input }: NodeProto, matrices: readonly QuantizedMatrix[]): string[] {
  const states = stateInputs.map((index) => input[index] ?? "");
  const parameters = matrices.flatMap(({ scales, zeroPoints }) => [scales, zeroPoints]);
  const values = matrices.map(({ quantizedValues }) => quantizedValues);
  return [at(input, 0), ...values, ...states, ...parameters];
}
