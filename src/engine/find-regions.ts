import { operatorName } from "./quantize/channel-axis.ts";
import { planFoldedFormat } from "./quantize/formats/plan-weight.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { weightDims } from "./quantize/weight-dims.ts";

/** Weights of one shape whose operators take them quantized in one way. */
export interface Region {
  readonly description: string;
  /** Positions of the weights. */
  readonly weights: readonly number[];
  readonly bytes: number;
  /** Whether rounded activations may cost more than the scheme promises. */
  readonly roundsActivations: boolean;
}

/**
 * Divides the weights that could be restored at load instead: products first, since looking up
 * rows takes little time in any format, and the largest first.
 */
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
      roundsActivations: members.some(({ format }) => roundsActivations(format)),
      isLookup: members.every(({ weight }) => isLookup(weight)),
    }))
    .toSorted((a, b) => Number(a.isLookup) - Number(b.isLookup) || b.bytes - a.bytes);
}

function isLookup({ consumers }: WeightPlan["weight"]): boolean {
  return consumers.every(({ node }) => operatorName(node) === "Gather");
}

/**
 * MatMulNBits at its accuracy level 4, which ONNX Runtime also makes of DequantizeLinear, and
 * LSTMs, which sum up what they lose from step to step.
 */
function roundsActivations(format: WeightPlan["format"]): boolean {
  const operations = format?.operations ?? [];
  return (
    format?.restoration === "dequantize" ||
    operations.some((each) => each === "block-product" || each === "recurrent-product")
  );
}

/** @returns undefined for a weight that costs nothing at run time as it is, or always costs it */
function describeRegion({ weight, format }: WeightPlan): string | undefined {
  if (format === undefined) return undefined;
  const isFolded =
    format.restoration === "fold" && format.operations.every((each) => each === "restore");
  if (isFolded || planFoldedFormat(weight, format) === undefined) return undefined;
  const operators = new Set(weight.consumers.map(({ node }) => operatorName(node)));
  const users = [...operators].join(" and ");
  const dims = weightDims(weight);
  // The two weights of an LSTM, which are quantized together, share the rows of their gates.
  const isRecurrent = format.operations.includes("recurrent-product");
  const size = isRecurrent ? `${dims[1]} rows` : dims.join(" × ");
  return `${format.description}, for ${users} [${size}]`;
}
