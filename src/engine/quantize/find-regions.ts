import { operatorName } from "./channel-axis.ts";
import { planFoldedFormat } from "./formats/plan-weight.ts";
import type { WeightPlan } from "./weight-plan.ts";
import { weightDims } from "./weight-dims.ts";

/** Weights of one shape whose operators take them quantized in one way. */
export interface Region {
  readonly description: string;
  /** Positions of the weights. */
  readonly weights: readonly number[];
  readonly bytes: number;
}

/** Divides the weights that could be restored at load instead, the largest region first. */
export function findRegions(plans: readonly WeightPlan[]): Region[] {
  const regions = new Map<string, WeightPlan[]>();
  for (const plan of plans) {
    const key = describeRegion(plan);
    if (key !== undefined) regions.set(key, [...(regions.get(key) ?? []), plan]);
  }
  return [...regions]
    .map(([description, members]) => ({
      description,
      weights: members.map(({ weight }) => weight.index),
      bytes: members.reduce((sum, { weight }) => sum + weight.bytes, 0),
    }))
    .toSorted((a, b) => b.bytes - a.bytes);
}

/** @returns undefined for a weight that costs nothing at run time as it is, or always costs it */
function describeRegion({ weight, format }: WeightPlan): string | undefined {
  if (format === undefined || format.storage.kind === "half") return undefined;
  const isFolded =
    format.restoration === "fold" && format.operations.every((each) => each === "restore");
  const { storage, ...rest } = format;
  if (isFolded || planFoldedFormat(weight, { ...rest, storage }) === undefined) return undefined;
  const operators = new Set(weight.consumers.map(({ node }) => operatorName(node)));
  return `${format.description}, for ${[...operators].join(" and ")} [${weightDims(weight).join(" × ")}]`;
}
