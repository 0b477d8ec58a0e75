import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import type { CandidateRatio, CandidateRunner } from "./candidate.ts";
import {
  chooseFloatingPoint,
  type RestoredWeights,
  type StaticPart,
} from "./choose-floating-point.ts";
import { minDecisionRounds } from "./latency/interim-analysis.ts";
import { placeTasks, reusePayloads, type WrittenPlan } from "./execute-plan.ts";
import { writeLayout } from "./onnx/write-model.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import { operatorName } from "./quantize/channel-axis.ts";
import { isStatic } from "./quantize/formats/multiply-static.ts";
import { planFoldedFormat } from "./quantize/formats/plan-weight.ts";
import { runTasks } from "./quantize/tasks/run-tasks.ts";
import { weightDims } from "./quantize/find-weights.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { formatRatio } from "../contract/jobs/latency.ts";

const nothing: RestoredWeights = { folded: new Map(), halved: new Map() };

interface ChooseOptions {
  /** Absent where the recipe does not have the result run. */
  readonly candidates: CandidateRunner | undefined;
  /** Whether the result is for a runtime that is not the one here: times say nothing of it. */
  readonly isForOtherRuntime: boolean;
  /** Whether the target's processor is known to have no integer dot products. */
  readonly lacksDotProducts: boolean;
  /** Plans the model once more, with what is restored of it. */
  readonly replan: (restored: RestoredWeights) => Promise<CompressionPlan>;
  /** Multiplications of the operators that take a static weight, by the weight's position. */
  readonly multiplications: ReadonlyMap<number, number>;
  /** Folder for candidates. */
  readonly scratch: string;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

/** Regions that are timed one by one; the others are folded where not all are faster. */
const maxTimedRegions = 6;
/** Fraction of the time budget for the model with every region quantized. */
const firstShare = 0.5;
/** Part of the latency that quantized operators have to save: less is not worth measuring. */
const smallestGain = 0.03;
/** SQNR that products of activations rounded to int8 may cost, dB: the error doubles. */
const maxActivationLossDb = 6;

/**
 * Times the result against the original or, where operators were fused, against the result with
 * all weights restored, so that the gain from fusing is not credited to integers. Where it is not
 * faster as a whole, each region is timed in a model that has no other, since runtimes fuse
 * operators across nodes; regions that are not faster get the format that costs nothing when the
 * model runs.
 */
export async function chooseRestoredAtLoad(
  written: WrittenPlan,
  options: ChooseOptions,
): Promise<RestoredWeights> {
  const regions = findRegions(written.plan.weights);
  if (regions.length === 0) return nothing;
  const { candidates, isForOtherRuntime } = options;
  if (candidates === undefined || (!isForOtherRuntime && candidates.budgetSeconds === 0)) {
    return isForOtherRuntime ? nothing : { ...nothing, folded: foldUntimed(regions, options) };
  }
  const work = { ...options, candidates, written, regions };
  if (isForOtherRuntime) return restoreInaccurate(regions, { ...work, reference: undefined });
  if (written.plan.fused.operators === 0) return keepFaster({ ...work, reference: undefined });
  return withCandidate([], work, (reference) => keepFaster({ ...work, reference }));
}

async function keepFaster(work: CandidateWork): Promise<RestoredWeights> {
  const { regions, written, log } = work;
  const result = path.join(written.directory, "model.onnx");
  const all = await timeCandidate(result, firstShare, work);
  if (all === undefined) return { ...nothing, folded: foldUntimed(regions, work) };
  log(`With quantized operators: ${formatInterval(all, work)}`);
  if (all.high <= 1) return restoreInaccurate(regions, work);
  const faster = await findFaster(all, work);
  const others = foldOthers(regions, faster.kept, faster.ratios);
  if (faster.kept.length === 0) return { ...nothing, folded: others };
  const { folded, halved } = await restoreInaccurate(faster.kept, work);
  return { folded: new Map([...others, ...folded]), halved };
}

async function timeCandidate(
  modelPath: string,
  share: number,
  { candidates, reference }: CandidateWork,
): Promise<CandidateRatio | undefined> {
  return candidates.time(modelPath, { share, isDecided, reference });
}

function isDecided({ low, high }: Pick<CandidateRatio, "low" | "high">): boolean {
  return high < 1 || low > 1 - smallestGain;
}

/** Without times, what is known of the target's processor decides. */
function foldUntimed(
  regions: readonly Region[],
  { lacksDotProducts }: Pick<ChooseOptions, "lacksDotProducts">,
): ReadonlyMap<number, string> {
  const reason = "is not faster on a processor without integer dot products";
  const weights = lacksDotProducts ? regions.flatMap((region) => region.weights) : [];
  return new Map(weights.map((index) => [index, reason]));
}

interface WrittenCandidates extends ChooseOptions {
  readonly candidates: CandidateRunner;
  readonly written: WrittenPlan;
  readonly regions: readonly Region[];
}

interface CandidateWork extends WrittenCandidates {
  /** Model that candidates are timed against; the original where it is undefined. */
  readonly reference: string | undefined;
}

interface FasterRegions {
  readonly kept: readonly Region[];
  readonly ratios: ReadonlyMap<Region, CandidateRatio>;
}

/** The regions that are faster alone and together; else the fastest one. */
async function findFaster(all: CandidateRatio, work: CandidateWork): Promise<FasterRegions> {
  const { regions, log } = work;
  const ratios = new Map<Region, CandidateRatio>();
  const [first, ...others] = regions;
  if (first !== undefined && others.length === 0)
    return { kept: [], ratios: new Map([[first, all]]) };
  const timed = regions.slice(0, countAffordable(all, work.candidates));
  const share = (1 - firstShare) / (timed.length + 1);
  for (const region of timed) {
    const interval = await timeRegions([region], share, work);
    if (interval === undefined) continue;
    log(`Only ${region.description}: ${formatInterval(interval, work)}`);
    ratios.set(region, interval);
  }
  const faster = [...ratios].filter(([, { high }]) => high < 1);
  const kept = faster.map(([region]) => region);
  if (kept.length < 2) return { kept, ratios };
  const together = await timeRegions(kept, share, work);
  if (together !== undefined && together.high <= 1) return { kept, ratios };
  const [fastest] = faster.toSorted(([, a], [, b]) => a.ratio - b.ratio);
  return { kept: fastest === undefined ? [] : [fastest[0]], ratios };
}

/** Regions for which the rest of the budget lasts: each is decided, and those kept together. */
function countAffordable(
  { secondsPerRound }: CandidateRatio,
  { budgetSeconds }: CandidateRunner,
): number {
  const seconds = (1 - firstShare) * budgetSeconds;
  const decisions = Math.floor(seconds / (minDecisionRounds * secondsPerRound));
  return Math.min(maxTimedRegions, Math.max(0, decisions - 1));
}

async function timeRegions(
  quantized: readonly Region[],
  share: number,
  work: CandidateWork,
): Promise<CandidateRatio | undefined> {
  return withCandidate(quantized, work, (file) => timeCandidate(file, share, work));
}

/**
 * Regions that round activations too, where that costs more than the rounding of weights: language
 * models have activations that are far larger than the others.
 */
async function restoreInaccurate(
  quantized: readonly Region[],
  work: CandidateWork,
): Promise<RestoredWeights> {
  if (quantized.some((region) => region.isStatic)) return restoreHarmful(quantized, work);
  const rounding = quantized.filter(({ roundsActivations }) => roundsActivations);
  if (rounding.length === 0) return nothing;
  const { measureSqnrDb } = work.candidates;
  const rounded = await withCandidate(quantized, work, measureSqnrDb);
  const others = quantized.filter((region) => !rounding.includes(region));
  const exact = await withCandidate(others, work, measureSqnrDb);
  if (rounded === undefined || exact === undefined) return nothing;
  if (exact - rounded <= maxActivationLossDb) return nothing;
  const loss = `${(exact - rounded).toFixed(1)} dB`;
  const reason = `would lose ${loss} of SQNR by activations that are rounded to int8`;
  const folded = rounding.flatMap(({ weights }) =>
    weights.map((index) => [index, reason] as const),
  );
  return { ...nothing, folded: new Map(folded) };
}

/** The static operators that cost too much accuracy; all where the others are not faster. */
async function restoreHarmful(
  quantized: readonly Region[],
  work: CandidateWork,
): Promise<RestoredWeights> {
  const { regions, written, candidates, log } = work;
  const statics = new Set(
    quantized.filter(({ isStatic }) => isStatic).flatMap(({ weights }) => weights),
  );
  const parts = written.plan.weights.flatMap(({ weight: { index } }): StaticPart[] =>
    statics.has(index)
      ? [{ weights: [index], multiplications: work.multiplications.get(index) ?? 0 }]
      : [],
  );
  const folded = foldOthers(regions, quantized, new Map());
  const addFolded = (restored: RestoredWeights): RestoredWeights => ({
    ...restored,
    folded: new Map([...folded, ...restored.folded]),
  });
  const hasOthers = written.plan.weights.some(
    ({ weight, format }) => format !== undefined && !statics.has(weight.index),
  );
  const chosen = await chooseFloatingPoint(parts, {
    log,
    hasOthers,
    measureSqnrDb: (restored, options) =>
      withPlan(addFolded(restored), work, (file) => candidates.measureSqnrDb(file, options)),
  });
  const count = chosen.folded.size + chosen.halved.size;
  if (count === 0) return nothing;
  const isFaster = async () => {
    const time = await withPlan(addFolded(chosen), work, (file) =>
      timeCandidate(file, 1 - firstShare, work),
    );
    if (time !== undefined) log(`Without them: ${formatInterval(time, work)}`);
    return time !== undefined && time.high <= 1;
  };
  const isKept = count < statics.size && (work.isForOtherRuntime || (await isFaster()));
  if (isKept) return chosen;
  const reason = "would cost too much accuracy, or is not faster without operators that do";
  return { ...nothing, folded: new Map([...statics].map((index) => [index, reason])) };
}

/** Writes the model with the other regions folded, if there are any, for as long as it is used. */
async function withCandidate<T>(
  quantized: readonly Region[],
  work: WrittenCandidates,
  use: (modelPath: string) => Promise<T>,
): Promise<T> {
  const folded = foldOthers(work.regions, quantized, new Map());
  return withPlan({ ...nothing, folded }, work, use);
}

async function withPlan<T>(
  restored: RestoredWeights,
  { written, replan, scratch, signal }: WrittenCandidates,
  use: (modelPath: string) => Promise<T>,
): Promise<T> {
  if (restored.folded.size + restored.halved.size === 0)
    return use(path.join(written.directory, "model.onnx"));
  const plan = await replan(restored);
  // What is restored is not always stored as it was for its operators.
  const tasks = reusePayloads(plan, written);
  const directory = path.join(scratch, `candidate-${randomUUID()}`);
  await mkdir(directory);
  try {
    await writeLayout(plan.model, {
      directory,
      layout: plan.layout,
      signal,
      writeComputedPayloads: async (destinations) => {
        await runTasks(placeTasks(tasks, destinations), { signal, onBytes: () => {} });
      },
    });
    return await use(path.join(directory, "model.onnx"));
  } finally {
    await rm(directory, { recursive: true });
  }
}

function foldOthers(
  regions: readonly Region[],
  quantized: readonly Region[],
  ratios: ReadonlyMap<Region, CandidateRatio>,
): Map<number, string> {
  const folded = new Map<number, string>();
  for (const region of regions) {
    if (quantized.includes(region)) continue;
    const interval = ratios.get(region);
    const measured = interval === undefined ? "" : `: ${formatShort(interval)} of the time`;
    for (const index of region.weights) {
      folded.set(index, `is not faster as ${region.description}${measured}`);
    }
  }
  return folded;
}

function formatInterval(
  interval: CandidateRatio,
  { reference }: Pick<CandidateWork, "reference">,
): string {
  const than = reference === undefined ? "the original's" : "what it is in floating point";
  return `latency ${formatShort(interval)} of ${than}`;
}

function formatShort({ ratio, low, high }: CandidateRatio): string {
  return formatRatio({ ratio, ratioLow: low, ratioHigh: high });
}

/** Weights of one shape whose operators take them quantized in one way. */
interface Region {
  readonly description: string;
  /** Positions of the weights. */
  readonly weights: readonly number[];
  readonly bytes: number;
  /** Whether rounded activations may cost more than the scheme promises. */
  readonly roundsActivations: boolean;
  readonly isStatic: boolean;
}

/**
 * Divides the weights that could be restored at load instead: products first, since looking up
 * rows takes little time in any format, and the largest first.
 */
function findRegions(plans: readonly WeightPlan[]): Region[] {
  const regions = new Map<string, WeightPlan[]>();
  for (const plan of plans) {
    const key = describeRegion(plan);
    if (key !== undefined) regions.set(key, [...(regions.get(key) ?? []), plan]);
  }
  return [...regions]
    .map(([description, members]) => ({
      ...createRegion(description, members),
      isLookup: members.every(({ weight }) => isLookup(weight)),
    }))
    .toSorted((a, b) => Number(a.isLookup) - Number(b.isLookup) || b.bytes - a.bytes);
}

function createRegion(description: string, members: readonly WeightPlan[]): Region {
  return {
    description,
    weights: members.map(({ weight }) => weight.index),
    bytes: members.reduce((sum, { weight }) => sum + weight.bytes, 0),
    roundsActivations: members.some(({ format }) => roundsActivations(format)),
    isStatic: members.some(({ format }) => isStatic(format)),
  };
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
  const isRecurrent = format.operations.some((each) => each === "recurrent-product");
  const kernel = dims.slice(2).join(" × ");
  if (isStatic(format) && kernel !== "") {
    return `${format.description}, for ${users} of ${kernel}${dims[1] === 1 ? ", a channel each" : ""}`;
  }
  const size = isRecurrent ? `${dims[1]} rows` : dims.join(" × ");
  return `${format.description}, for ${users} [${size}]`;
}
