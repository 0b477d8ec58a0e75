import { countStorageBytes } from "./describe-storage.ts";
import {
  type Candidate,
  listCandidates,
  type QuantizedScheme,
  type RecipeForTarget,
} from "./list-candidates.ts";
import { canFold, chooseRestoration, restorationOpset } from "./plan-restoration.ts";
import { weightOperations } from "./weight-operations.ts";
import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { elementTypeName } from "../../onnx/element-type.ts";
import type { OnnxModel } from "../../onnx/onnx-model.ts";
import { countElements } from "../../onnx/tensor-shape.ts";
import type { Weight, WeightConsumer } from "../find-weights.ts";
import type { HalfChoice } from "../half/choose-half-nodes.ts";
import { planHalfFormat } from "../half/plan-half-format.ts";
import { findFloatType } from "../source-weight.ts";
import { weightDims } from "../weight-dims.ts";
import type {
  QuantizedFormat,
  QuantizedStorage,
  WeightFormat,
  WeightOperation,
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
  if (typeof own !== "string") return { format: own, reason: undefined };
  if (fallback === "none") return { format: undefined, reason: own };
  const other = planScheme(weight, context, fallback);
  if (typeof other !== "string") return { format: other, reason: own };
  return { format: undefined, reason: own === other ? own : `${own}; ${other}` };
}

/** @returns why the weight has no format of a scheme */
function planScheme(
  weight: Weight,
  context: WeightContext,
  scheme: Recipe["scheme"],
): PlannedFormat | string {
  return scheme === "fp16"
    ? planHalfFormat(weight, context)
    : planQuantizedFormat(weight, context, scheme);
}

function planQuantizedFormat(
  weight: Weight,
  context: WeightContext,
  scheme: QuantizedScheme,
): PlannedFormat | string {
  const { recipe } = context;
  const obstacle = findQuantizationObstacle(weight, recipe);
  if (obstacle !== undefined) return obstacle;
  let reason = `has no form in ${scheme}`;
  for (const candidate of listCandidates(weight, context, scheme)) {
    const planned = planCandidate(weight, recipe, candidate);
    if (typeof planned === "string") reason = planned;
    else if (planned.bytes < weight.bytes) return planned;
    else reason = `would have ${planned.bytes} bytes as ${planned.description}`;
  }
  return reason;
}

/** Why a weight can have no quantized format, whatever the scheme. */
function findQuantizationObstacle(weight: Weight, { minElements }: Recipe): string | undefined {
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
  { storage, operations, required }: Candidate,
): PlannedFormat | string {
  if (typeof storage === "string") return storage;
  const chosen = weight.consumers.map((consumer): WeightOperation | Obstacle =>
    chooseOperation(weight, consumer, { storage, operations }),
  );
  const obstacles = chosen.filter((each) => typeof each !== "string");
  const isScheme = required?.some((operation) => chosen.includes(operation)) ?? true;
  if (!isScheme) return obstacles[0]?.obstacle ?? missingOperation(weight, storage, required);
  const taken = chosen.map((each): WeightOperation =>
    typeof each === "string" ? each : "restore",
  );
  const restored = weight.consumers.filter((_, index) => taken[index] === "restore");
  const restoration =
    restored.length === 0 ? null : chooseRestoration(restored, { storage, recipe });
  if (restoration === undefined) return obstacles[0]?.obstacle ?? "cannot be restored by operators";
  return completeFormat(weight, { storage, operations: taken, restoration });
}

/** Why no consumer has an operation, though all have another one. */
function missingOperation(
  weight: Weight,
  storage: QuantizedStorage,
  [operation]: NonNullable<Candidate["required"]> = [],
): string {
  const [consumer] = weight.consumers;
  if (operation === undefined || consumer === undefined) return "is not used";
  return weightOperations[operation].findObstacle(weight, consumer, storage) ?? "is not used";
}

interface Obstacle {
  readonly obstacle: string;
}

function chooseOperation(
  weight: Weight,
  consumer: WeightConsumer,
  { storage, operations }: Pick<Candidate, "operations"> & { readonly storage: QuantizedStorage },
): WeightOperation | Obstacle {
  let obstacle: string | undefined;
  for (const operation of operations) {
    const found = weightOperations[operation].findObstacle(weight, consumer, storage);
    if (found === undefined) return operation;
    obstacle ??= found;
  }
  return { obstacle: obstacle ?? "has no operation" };
}

/** The format that costs nothing when the model runs; undefined where a weight cannot have it. */
export function planFoldedFormat(
  weight: Weight,
  { storage, operations }: WeightFormat,
): PlannedFormat | undefined {
  if (storage.kind === "half" || !canFold(storage)) return undefined;
  return completeFormat(weight, {
    storage,
    operations: operations.map(() => "restore"),
    restoration: "fold",
  });
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
  const versions = operations.map((each) =>
    each === "restore" ? 0 : weightOperations[each].opset,
  );
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
    return `int${bits} with a scale for each ${blockSize} ${unit}${suffix}`;
  }
  const { axis, format } = storage;
  if (operation === "integer-product" || operation === "recurrent-product") {
    const values = format.reduceRange ? "7-bit values" : format.type;
    const scales = axis === null ? "one scale" : "a scale for each output";
    return `${values} with ${scales}, ${productInputs[operation]}`;
  }
  if (axis === null) return `${format.type} with one scale`;
  return operation === "gather-rows"
    ? `${format.type} with a scale for each row`
    : `${format.type} with a scale for each slice of axis ${axis}`;
}

const productInputs = {
  "integer-product": "inputs in uint8",
  "recurrent-product": "for DynamicQuantizeLSTM",
} as const;

const blockOperators: Readonly<Partial<Record<WeightOperation, string>>> = {
  "block-product": "MatMulNBits",
  "gather-blocks": "GatherBlockQuantized",
};
