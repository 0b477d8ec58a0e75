import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import type { Weight } from "../find-weights.ts";
import type { ValueUse } from "../graph-index.ts";
import { Obstacle } from "../obstacle.ts";
import type { PlannedFormat } from "../weight-plan.ts";
import { findHalfRangeLoss, type HalfChoice } from "./choose-half-nodes.ts";
import { halfOperators, halfPositions } from "./half-operators.ts";

/** A weight is stored in half precision if any of its users work in it. @returns why it is not */
export function planHalfFormat(
  weight: Weight,
  { model, half }: { readonly model: OnnxModel; readonly half: HalfChoice },
): PlannedFormat | Obstacle {
  const users = weight.uses.filter((use) => isHalfUse(use, half));
  if (users.length === 0) return new Obstacle(explainUnconverted(model, weight));
  const isKept = users.length < weight.uses.length || weight.isOutput;
  return {
    storage: { kind: "half", isKept },
    operations: [],
    restoration: null,
    description: isKept ? "float16 beside the original" : "float16",
    bytes: weight.bytes / 2 + (isKept ? weight.bytes : 0),
    opset: 0,
  };
}

/**
 * The format of a weight that is stored in half precision, for operators that compute in single:
 * runtimes convert it when they load the model. Undefined where a weight cannot have it.
 */
export function planRestoredHalf(weight: Weight, model: OnnxModel): PlannedFormat | undefined {
  if (weight.isOutput || weight.isSparse) return undefined;
  if (weight.tensor.dataType !== DataType.FLOAT) return undefined;
  if (findHalfRangeLoss(weight, { model }) === "overflow") return undefined;
  return {
    storage: { kind: "half", isKept: false },
    operations: [],
    restoration: "fold",
    description: "float16, restored at load",
    bytes: weight.bytes / 2,
    opset: 6,
  };
}

/** Whether a node takes an input in half precision. */
export function isHalfUse({ node, input }: ValueUse, half: HalfChoice): boolean {
  const positions = halfPositions(halfOperators.get(node.opType)?.inputs ?? [], node.input);
  return half.nodes.has(node) && positions.includes(input);
}

function explainUnconverted(model: OnnxModel, weight: Weight): string {
  if (weight.uses.length === 0) return "is not used";
  if (weight.tensor.dataType === DataType.FLOAT16) return "is in half precision already";
  const problem = findHalfRangeLoss(weight, { model });
  if (problem === "overflow") return "has values beyond the range of half precision";
  if (problem === "underflow") return "has values that half precision would make zero";
  return `is used by ${weight.uses[0]?.node.opType}, which works in single precision`;
}
