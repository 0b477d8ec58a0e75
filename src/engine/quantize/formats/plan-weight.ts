import { countStorageBytes } from "./describe-storage.ts";
import {
  type Candidate,
  listCandidates,
  type QuantizedScheme,
  type RecipeForTarget,
  type StorageCandidate,
} from "./list-candidates.ts";
import { canDequantize, canFold, chooseRestoration, restorationOpset } from "./plan-restoration.ts";
import {
  affineOperations,
  blockOperations,
  operationOpset,
  type OperationTable,
} from "./weight-operations.ts";
import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { elementTypeName } from "../../onnx/element-type.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import { type Weight, type WeightConsumer, weightDims } from "../find-weights.ts";
import type { HalfChoice } from "../half/choose-half-nodes.ts";
import { planHalfFormat } from "../half/plan-half-format.ts";
import { findFloatType } from "../source-weight.ts";
import { Obstacle } from "../obstacle.ts";
import {
  type AffineOperation,
  type BlockOperation,
  isAffine,
  isHalf,
  type QuantizedFormat,
  type QuantizedStorage,
  type StorageFormat,
  type WeightFormat,
  type WeightOperation,
} from "../weight-format.ts";
import type { PlannedFormat, WeightPlan } from "../weight-plan.ts";

interface WeightContext extends RecipeForTarget {
  readonly model: OnnxModel;
  /** Nodes that work in half precision. */
  readonly half: HalfChoice;
  /** Whether an LSTM may take the weight quantized: its other weight has to be so too. */
  readonly takesRecurrent: boolean;
}

/** Plans the first format of the recipe's scheme, else of its fallback, that saves bytes. */
export function planWeight(weight: Weight, context: WeightContext): Omit<WeightPlan, "weight"> {
  const { scheme, fallback } = context.recipe;
  const own = planScheme(weight, context, scheme);
  if (!(own instanceof Obstacle)) return { format: own, reason: undefined };
  const { reason } = own;
  if (fallback === "none") return { format: undefined, reason };
  const other = planScheme(weight, context, fallback);
  if (!(other instanceof Obstacle)) return { format: other, reason };
  return {
    format: undefined,
    reason: reason === other.reason ? reason : `${reason}; ${other.reason}`,
  };
}

function planScheme(
  weight: Weight,
  context: WeightContext,
  scheme: Recipe["scheme"],
): PlannedFormat | Obstacle {
  return scheme === "fp16"
    ? planHalfFormat(weight, context)
    : planQuantizedFormat(weight, context, scheme);
}

function planQuantizedFormat(
  weight: Weight,
  context: WeightContext,
  scheme: QuantizedScheme,
): PlannedFormat | Obstacle {
  const { recipe } = context;
  const excluded = explainExclusion(weight, recipe);
  if (excluded !== undefined) return new Obstacle(excluded);
  let obstacle = new Obstacle(`has no form in ${scheme}`);
  for (const candidate of listCandidates(weight, context, scheme)) {
    const planned =
      candidate instanceof Obstacle ? candidate : planCandidate(weight, recipe, candidate);
    if (planned instanceof Obstacle) obstacle = planned;
    else if (planned.bytes < weight.bytes) return planned;
    else obstacle = new Obstacle(`would have ${planned.bytes} bytes as ${planned.description}`);
  }
  return obstacle;
}

/** Why a weight can have no quantized format, whatever the scheme. */
function explainExclusion(weight: Weight, { minElements }: Recipe): string | undefined {
  const { tensor, consumers } = weight;
  const elements = countElements(weightDims(weight));
  if (elements === 0) return "has no elements";
  if (findFloatType(weight) === undefined) {
    return `is ${elementTypeName(tensor.dataType)}, which has no form in fewer bits`;
  }
  if (consumers.length === 0) return "is not used";
  if (weight.isSparse) return "is sparse, which has no form in fewer bits";
  if (weight.isOutput) return "is an output of the model or of a subgraph";
  if (elements < minElements) return `has fewer elements than minElements ${minElements}`;
  return undefined;
}

function planCandidate(
  weight: Weight,
  recipe: Recipe,
  candidate: Candidate,
): PlannedFormat | Obstacle {
  const format = isAffine(candidate)
    ? chooseFormat(weight, recipe, candidate, affineOperations)
    : chooseFormat(weight, recipe, candidate, blockOperations);
  return format instanceof Obstacle ? format : completeFormat(weight, format);
}

/** Each consumer gets its first operation without an obstacle, or the weight restored. */
function chooseFormat<
  Storage extends QuantizedStorage,
  Operation extends AffineOperation | BlockOperation,
>(
  weight: Weight,
  recipe: Recipe,
  { storage, operations, required }: StorageCandidate<Storage, Operation>,
  table: OperationTable<Storage, Operation>,
): StorageFormat<Storage, Operation> | Obstacle {
  const choose = (consumer: WeightConsumer): Operation | Obstacle => {
    let obstacle: Obstacle | undefined;
    for (const operation of operations) {
      const found = table[operation].findObstacle(weight, consumer, storage);
      if (found === undefined) return operation;
      obstacle ??= found;
    }
    return obstacle ?? new Obstacle("has no operation");
  };
  const chosen = weight.consumers.map(choose);
  const obstacle = chosen.find((each) => each instanceof Obstacle);
  const isScheme = required?.some((operation) => chosen.includes(operation)) ?? true;
  if (!isScheme) {
    // Without an obstacle all consumers have another operation than the scheme's.
    const [operation] = required ?? [];
    const [consumer] = weight.consumers;
    const missing =
      operation && consumer && table[operation].findObstacle(weight, consumer, storage);
    return obstacle ?? missing ?? new Obstacle("is not used");
  }
  const taken = chosen.map((each) => (each instanceof Obstacle ? "restore" : each));
  const restored = weight.consumers.filter((_, index) => taken[index] === "restore");
  const isStatic = taken.some((each) => each === "static-product");
  const chosenRestoration = () =>
    restored.length === 0 ? null : chooseRestoration(weight, restored, storage, recipe);
  const staticRestoration = canDequantize(weight, storage) ? ("dequantize" as const) : undefined;
  const restoration = isStatic ? staticRestoration : chosenRestoration();
  if (restoration === undefined) {
    return obstacle ?? new Obstacle("cannot be restored by operators");
  }
  return { storage, operations: taken, restoration };
}

/** The format that costs nothing when the model runs; undefined where a weight cannot have it. */
export function planFoldedFormat(weight: Weight, format: WeightFormat): PlannedFormat | undefined {
  if (isHalf(format) || !canFold(format.storage)) return undefined;
  const operations = format.operations.map(() => "restore" as const);
  return completeFormat(weight, { ...format, operations, restoration: "fold" });
}

function completeFormat(weight: Weight, format: QuantizedFormat): PlannedFormat {
  return {
    ...format,
    description: describeFormat(format),
    bytes: countStorageBytes(weight, format.storage),
    opset: findOpset(weight, format),
  };
}

function findOpset(weight: Weight, { storage, operations, restoration }: QuantizedFormat): number {
  const versions = operations.map((each) => (each === "restore" ? 0 : operationOpset(each)));
  return Math.max(0, ...versions, restorationOpset(weight, storage, restoration));
}

/** A weight's format for the report, such as `int8 with a scale for each slice of axis 0`. */
function describeFormat(format: QuantizedFormat): string {
  const [operation = "restore"] = format.operations.toSorted(compareOperations);
  const suffix = format.restoration === "fold" ? ", restored at load" : "";
  return describeNumbers(format, operation) + suffix;
}

/** Operations on quantized values first. */
function compareOperations(a: WeightOperation, b: WeightOperation): number {
  return Number(a === "restore") - Number(b === "restore");
}

function describeNumbers({ storage }: QuantizedFormat, operation: WeightOperation): string {
  if (storage.kind !== "affine") {
    const { bits, blockSize } = storage.format;
    const unit = operation.startsWith("gather") ? "values of a row" : "inputs of an output";
    const operator = blockOperators[operation];
    const suffix = operator === undefined ? "" : `, for ${operator}`;
    const parameters = storage.kind === "offset-blocks" ? "a scale and an offset" : "a scale";
    return `int${bits} with ${parameters} for each ${blockSize} ${unit}${suffix}`;
  }
  const { axis, format } = storage;
  if (
    operation === "integer-product" ||
    operation === "recurrent-product" ||
    operation === "static-product"
  ) {
    const values = format.reduceRange ? "7-bit values" : format.type;
    const scales = axis === null ? "one scale" : "a scale for each output";
    const inputs = storage.dialect?.activations[0] ?? "uint8";
    return `${values} with ${scales}, ${productInputs[operation](inputs)}`;
  }
  if (axis === null) return `${format.type} with one scale`;
  return operation === "gather-rows"
    ? `${format.type} with a scale for each row`
    : `${format.type} with a scale for each slice of axis ${axis}`;
}

const productInputs = {
  "integer-product": () => "inputs in uint8",
  "recurrent-product": () => "for DynamicQuantizeLSTM",
  "static-product": (codes: string) => `inputs in ${codes} by calibration`,
} as const;

const blockOperators: Readonly<Partial<Record<WeightOperation, string>>> = {
  "block-product": "MatMulNBits",
  "offset-product": "MatMulNBits",
  "gather-blocks": "GatherBlockQuantized",
};
