import type { Recipe } from "../../../contract/recipe.ts";
import type { Weight, WeightConsumer } from "../find-weights.ts";
import type { PlannedFormat, QuantizedWeightPlan } from "../weight-plan.ts";
import { countStorageBytes } from "./describe-storage.ts";
import { gathersRows } from "./consumer-matrix.ts";
import { describeFormat } from "./describe-format.ts";
import { canFold, chooseRestoration, restorationOpset } from "./plan-restoration.ts";
import { planAffineStorage, planBlockStorage } from "./plan-storage.ts";
import { weightOperations } from "./weight-operations.ts";
import type { QuantizedFormat, WeightOperation, QuantizedStorage } from "../weight-format.ts";

type PlannedQuantization = PlannedFormat<QuantizedFormat>;
type Scheme = Recipe["scheme"];
type Operation = Exclude<WeightOperation, "restore">;

/** A way to store a weight, and the operations that consumers may have on it. */
interface Candidate {
  readonly storage: QuantizedStorage | string;
  readonly operations: readonly Operation[];
  /** Operations that the scheme is about: one consumer at least must have one; absent for none. */
  readonly required?: readonly Operation[];
}

/** Plans the first format of the recipe's scheme, else of its fallback, that saves bytes. */
export function planWeight(weight: Weight, recipe: Recipe): Omit<QuantizedWeightPlan, "weight"> {
  const own = planScheme(weight, recipe, recipe.scheme);
  if (typeof own !== "string") return { format: own, reason: undefined };
  if (recipe.fallback === "none") return { format: undefined, reason: own };
  const other = planScheme(weight, recipe, recipe.fallback);
  if (typeof other !== "string") return { format: other, reason: own };
  return { format: undefined, reason: own === other ? own : `${own}; ${other}` };
}

function planScheme(weight: Weight, recipe: Recipe, scheme: Scheme): PlannedQuantization | string {
  let reason = `has no form in ${scheme}`;
  for (const candidate of listCandidates(weight, recipe, scheme)) {
    const planned = planCandidate(weight, recipe, candidate);
    if (typeof planned === "string") reason = planned;
    else if (planned.bytes < weight.bytes) return planned;
    else reason = `would have ${planned.bytes} bytes as ${planned.description}`;
  }
  return reason;
}

/** Candidates of a scheme, the best first. The reason of the last one is the one to report. */
function listCandidates(weight: Weight, recipe: Recipe, scheme: Scheme): readonly Candidate[] {
  switch (scheme) {
    case "fp16":
      return [];
    case "int8-dynamic": {
      const storage = planAffineStorage(weight, recipe, recipe.reduceRange);
      return [
        { storage, operations: ["integer-product", "gather-rows"], required: ["integer-product"] },
      ];
    }
    case "int4-weight":
      return listBlockCandidates(weight, recipe, 4);
    case "int8-weight": {
      const storage = planAffineStorage(weight, recipe, false);
      const affine = { storage, operations: ["gather-rows"] as const };
      const isBlock = recipe.granularity === "block";
      return isBlock ? [...listBlockCandidates(weight, recipe, 8), affine] : [affine];
    }
  }
}

function listBlockCandidates(weight: Weight, recipe: Recipe, bits: 4 | 8): Candidate[] {
  const { blockSize, symmetric } = recipe;
  const format = { bits, blockSize, symmetric };
  const packed = planBlockStorage(weight, "packed-blocks", format);
  if (recipe.operators === "contrib") {
    const operations = ["block-product", "gather-blocks", "gather-packed-rows"] as const;
    const candidate = { storage: packed, operations };
    const linear = planBlockStorage(weight, "linear-blocks", format);
    if (typeof linear !== "string" && linear.matrices > 1) {
      return [{ storage: linear, operations: [] }];
    }
    if (!weight.consumers.every((consumer) => gathersRows(weight, consumer))) return [candidate];
    const rows = planBlockStorage(weight, "packed-rows", format);
    return [
      { ...candidate, required: operations },
      { ...candidate, storage: rows },
    ];
  }
  const linear = planBlockStorage(weight, "linear-blocks", format);
  return [
    { storage: packed, operations: ["gather-packed-rows"], required: ["gather-packed-rows"] },
    { storage: linear, operations: [] },
  ];
}

function planCandidate(
  weight: Weight,
  recipe: Recipe,
  { storage, operations, required }: Candidate,
): PlannedQuantization | string {
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
  [operation]: readonly Operation[] = [],
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
  { storage, operations }: { storage: QuantizedStorage; operations: readonly Operation[] },
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
  { storage, operations }: QuantizedFormat,
): PlannedQuantization | undefined {
  if (!canFold(storage)) return undefined;
  return completeFormat(weight, {
    storage,
    operations: operations.map(() => "restore"),
    restoration: "fold",
  });
}

function completeFormat(weight: Weight, format: QuantizedFormat): PlannedQuantization {
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
