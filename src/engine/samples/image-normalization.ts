import type { GraphValues } from "./graph-values.ts";

/** How an image model wants pixels of 0 to 1: less the mean, over the deviation, by channel. */
export interface ImageNormalization {
  readonly name: string;
  readonly mean: readonly number[];
  readonly deviation: readonly number[];
}

const unit: ImageNormalization = { name: "0 to 1", mean: [0, 0, 0], deviation: [1, 1, 1] };
export const byteNormalization: ImageNormalization = {
  name: "0 to 255",
  mean: [0, 0, 0],
  deviation: [1 / 255, 1 / 255, 1 / 255],
};
const centered: ImageNormalization = {
  name: "-1 to 1",
  mean: [0.5, 0.5, 0.5],
  deviation: [0.5, 0.5, 0.5],
};
const imageNet: ImageNormalization = {
  name: "ImageNet's mean and deviation",
  mean: [0.485, 0.456, 0.406],
  deviation: [0.229, 0.224, 0.225],
};

interface FoundNormalization {
  readonly normalization: ImageNormalization;
  /** Mean of the pixels, 0 to 1, that the model was trained on; undefined where nothing says it. */
  readonly brightness?: number;
}

/**
 * The normalization that a model's first layers say. Constants that it subtracts or divides by say
 * the range. Otherwise, a BatchNormalization after the first Conv has the mean of what the Conv
 * gives, which is its kernel's sum over each channel times the channel's mean: solved for the
 * channels' means, they are those of gray pixels under the right normalization only. Without such
 * statistics, readers of single lines take -1 to 1, and other models ImageNet's.
 */
export function findNormalization(
  values: GraphValues,
  input: string,
  { channels, isLine }: { readonly channels: number; readonly isLine: boolean },
): FoundNormalization {
  const usual = isLine ? centered : imageNet;
  for (const [node, value] of values.takers(input)) {
    if (["Sub", "Div", "Mul", "Add"].includes(node.opType)) {
      const constant = values.readFloats(node.input.find((name) => name !== value) ?? "");
      if (constant === undefined) continue;
      const largest = Math.max(...[...constant].map(Math.abs));
      const isOfBytes = node.opType === "Mul" ? largest < 0.05 : largest > 2;
      return { normalization: isOfBytes ? byteNormalization : unit };
    }
    const means = node.opType === "Conv" && solveChannelMeans(values, node, channels);
    if (means) return chooseByMeans(means) ?? { normalization: usual };
  }
  return { normalization: usual };
}

function chooseByMeans(means: readonly number[]): FoundNormalization | undefined {
  const fitting = [centered, imageNet, unit, byteNormalization].flatMap((normalization) => {
    const pixels = means.map((mean, channel) => {
      const { mean: offsets, deviation } = normalization;
      return mean * (deviation[channel] ?? 1) + (offsets[channel] ?? 0);
    });
    const brightness = pixels.reduce((sum, pixel) => sum + pixel, 0) / pixels.length;
    const spread = Math.max(...pixels) - Math.min(...pixels);
    return pixels.every((pixel) => pixel > 0.05 && pixel < 0.99)
      ? [{ normalization, brightness, spread }]
      : [];
  });
  const [best] = fitting.toSorted((a, b) => a.spread - b.spread);
  return best && { normalization: best.normalization, brightness: best.brightness };
}

/** The channels' means by least squares; undefined where the statistics do not say them. */
function solveChannelMeans(
  values: GraphValues,
  conv: { readonly input: readonly string[]; readonly output: readonly string[] },
  channels: number,
): number[] | undefined {
  const [, kernel = "", bias = ""] = conv.input;
  const dims = values.constantDims(kernel);
  const weights = values.readFloats(kernel);
  const statistics = findRunningMeans(values, conv.output[0] ?? "");
  const [filters = 0, depth = 0] = dims ?? [];
  if (!dims || !weights || statistics?.length !== filters || depth !== channels) return undefined;
  const offsets = values.readFloats(bias);
  const area = weights.length / (filters * depth);
  const sums = Array.from({ length: filters }, (_, filter) =>
    Array.from({ length: depth }, (__, channel) => {
      const start = (filter * depth + channel) * area;
      return weights.subarray(start, start + area).reduce((sum, each) => sum + each, 0);
    }),
  );
  const wanted = [...statistics].map((mean, filter) => mean - (offsets?.[filter] ?? 0));
  const means = solveLeastSquares(sums, wanted);
  return means && explains(sums, wanted, means) ? means : undefined;
}

function findRunningMeans(values: GraphValues, output: string): Float32Array | undefined {
  for (const [node] of values.takers(output)) {
    if (node.opType === "BatchNormalization") return values.readFloats(node.input[3] ?? "");
  }
  return undefined;
}

/** Largest share of the statistics' norm that the means may leave unexplained. */
const maxResidual = 0.25;

function explains(
  rows: readonly (readonly number[])[],
  wanted: readonly number[],
  solution: readonly number[],
): boolean {
  const left = wanted.map((value, index) => value - dot(rows[index] ?? [], solution));
  return Math.hypot(...left) <= maxResidual * Math.hypot(...wanted);
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, each, index) => sum + each * (b[index] ?? 0), 0);
}

/** Solves the normal equations by elimination with pivots; undefined where they are singular. */
function solveLeastSquares(
  rows: readonly (readonly number[])[],
  wanted: readonly number[],
): number[] | undefined {
  const size = rows[0]?.length ?? 0;
  const column = (index: number) => rows.map((row) => row[index] ?? 0);
  const system = Array.from({ length: size }, (_, i) => [
    ...Array.from({ length: size }, (__, j) => dot(column(i), column(j))),
    dot(column(i), wanted),
  ]);
  for (let step = 0; step < size; step++) {
    const pivot = system
      .slice(step)
      .toSorted((a, b) => Math.abs(b[step] ?? 0) - Math.abs(a[step] ?? 0))[0];
    if (pivot === undefined || Math.abs(pivot[step] ?? 0) < 1e-12) return undefined;
    system.splice(system.indexOf(pivot), 1);
    system.splice(step, 0, pivot);
    for (const row of system) {
      if (row === pivot) continue;
      const factor = (row[step] ?? 0) / (pivot[step] ?? 1);
      for (let at = step; at <= size; at++) row[at] = (row[at] ?? 0) - factor * (pivot[at] ?? 0);
    }
  }
  return system.map((row, index) => (row[size] ?? 0) / (row[index] ?? 1));
}
