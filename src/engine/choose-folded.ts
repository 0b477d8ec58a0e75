import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { writeLayout } from "./onnx/write-model.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import { findRegions, type Region } from "./quantize/find-regions.ts";
import { reusePayloads, type WrittenPlan } from "./reuse-payloads.ts";

/** Latency of a candidate relative to the original's. */
interface CandidateRatio {
  readonly ratio: number;
  /** The 95 % interval. */
  readonly low: number;
  readonly high: number;
}

interface TimingOptions {
  /** Fraction of the time budget that the measurement may take. */
  readonly share: number;
  /** Whether an interval suffices, though it is wide. */
  readonly isDecided: (interval: CandidateRatio) => boolean;
}

/** Times a whole model in pairs with the original. */
export type TimeCandidate = (modelPath: string, options: TimingOptions) => Promise<CandidateRatio>;

interface ChooseOptions {
  readonly timeCandidate: TimeCandidate;
  /** Plans the model once more, with formats that are free at run time for some weights. */
  readonly replan: (folded: ReadonlyMap<number, string>) => Promise<CompressionPlan>;
  /** Folder for candidates. */
  readonly scratch: string;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

/** Regions that are timed one by one; the smallest others are folded where not all are faster. */
const maxTimedRegions = 6;
/** Fraction of the time budget for the model with every region quantized. */
const firstShare = 0.4;

/**
 * Times the result against the original. Where it is not faster as a whole, each region is timed in
 * a model that has no other, since runtimes fuse operators across nodes; regions that are not
 * faster get the format that costs nothing when the model runs.
 * @returns the weights that get that format, by their position, and why
 */
export async function chooseFolded(
  written: WrittenPlan,
  options: ChooseOptions,
): Promise<ReadonlyMap<number, string>> {
  const regions = findRegions(written.plan.weights);
  if (regions.length === 0) return new Map();
  const { timeCandidate, log } = options;
  const all = await timeCandidate(path.join(written.directory, "model.onnx"), {
    share: firstShare,
    isDecided,
  });
  log(`With quantized operators: latency ${formatInterval(all)} of the original's`);
  if (all.high <= 1) return new Map();
  const ratios = new Map<Region, CandidateRatio>();
  if (regions.length === 1 && regions[0] !== undefined) ratios.set(regions[0], all);
  for (const region of regions.length === 1 ? [] : regions.slice(0, maxTimedRegions)) {
    const share = (1 - firstShare) / (Math.min(regions.length, maxTimedRegions) + 1);
    const interval = await timeRegions([region], regions, { ...options, written, share });
    log(`${region.description} alone: latency ${formatInterval(interval)} of the original's`);
    ratios.set(region, interval);
  }
  const faster = await confirmFaster(regions, ratios, { ...options, written });
  return foldOthers(regions, faster, ratios);
}

function isDecided({ low, high }: CandidateRatio): boolean {
  return high < 1 || low > 1;
}

interface CandidateOptions extends ChooseOptions {
  readonly written: WrittenPlan;
}

/** The regions that are faster alone and together; else the fastest one. */
async function confirmFaster(
  regions: readonly Region[],
  ratios: ReadonlyMap<Region, CandidateRatio>,
  options: CandidateOptions,
): Promise<readonly Region[]> {
  const faster = [...ratios].filter(([, { high }]) => high < 1);
  const kept = faster.map(([region]) => region);
  if (kept.length < 2) return kept;
  const share = (1 - firstShare) / (ratios.size + 1);
  const together = await timeRegions(kept, regions, { ...options, share });
  options.log(`The faster ones together: latency ${formatInterval(together)} of the original's`);
  if (together.high <= 1) return kept;
  const [fastest] = faster.toSorted(([, a], [, b]) => a.ratio - b.ratio);
  return fastest === undefined ? [] : [fastest[0]];
}

async function timeRegions(
  quantized: readonly Region[],
  regions: readonly Region[],
  options: CandidateOptions & Pick<TimingOptions, "share">,
): Promise<CandidateRatio> {
  const { written, replan, scratch, signal, share, timeCandidate } = options;
  const plan = await replan(foldOthers(regions, quantized, new Map()));
  reusePayloads(plan, written);
  const directory = path.join(scratch, `candidate-${randomUUID()}`);
  await mkdir(directory);
  await writeLayout(plan.model, { directory, layout: plan.layout, signal });
  const interval = await timeCandidate(path.join(directory, "model.onnx"), { share, isDecided });
  await rm(directory, { recursive: true });
  return interval;
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
    const measured = interval === undefined ? "" : `: ${formatInterval(interval)} of the time`;
    for (const index of region.weights) {
      folded.set(index, `is not faster as ${region.description}${measured}`);
    }
  }
  return folded;
}

function formatInterval({ ratio, low, high }: CandidateRatio): string {
  return `${ratio.toFixed(2)} (${low.toFixed(2)}-${high.toFixed(2)})`;
}
