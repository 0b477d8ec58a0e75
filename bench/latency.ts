import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import type { PartialRecipe } from "../src/contract/jobs/recipe.ts";
import { defaultRecipe, findTarget, resolveRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../src/contract/jobs/target.ts";
import { createCandidateRunner } from "../src/engine/candidate-runner.ts";
import type { CandidateRatio, CandidateRunner } from "../src/engine/candidate.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import { runPythonFile } from "../test/support/python.ts";
import { minilmData, realModel, type RealModelName } from "../test/support/real-models.ts";
import { type BenchRow, leastRow, reportBench } from "./result.ts";
import { realKinds, writeRealSamples } from "./samples/real-samples.ts";

/**
 * Latency of results relative to their originals, timed in pairs, beside that of what ONNX
 * Runtime's own quantizer makes at its defaults; calibrated ones on real data kept apart.
 * Arguments: parts of the names of cases, all without them.
 */
const models: readonly RealModelName[] = [
  "minilm",
  "ocr-detection",
  "ocr-recognition",
  "ocr-orientation",
  "ocr-detection-v6",
  "ocr-recognition-v6",
  "ocr-orientation-constants",
  "page-orientation",
  "voice-v5",
  "voice-16k",
  "voice-without-if",
];
const wanted = process.argv.slice(3);
/** Its budget is spent to choose formats, and as much again to time the result. */
const { evaluation } = defaultRecipe;
const target = findTarget(builtinTargets, "cpu-int8");
/** Of the budget, for the peer's: the interval may be wider. */
const peerShare = 0.3;
/** Most that a result may be slower: the upper end of the ratio's interval. */
const slowest = 1.03;

interface Case {
  readonly model: RealModelName;
  readonly what: string;
  readonly recipe: PartialRecipe;
  /** Kind of the real data that it is calibrated on, where it is. */
  readonly calibratedOn?: string | undefined;
}

interface Bar {
  readonly ratio: number;
  readonly sqnrDb?: number;
}

const bars: Readonly<Record<string, Bar>> = {
  "minilm for cpu-int8": { ratio: 0.45 },
  "minilm in int8 blocks": { ratio: 0.85 },
  "ocr-recognition for cpu-int8": { ratio: 0.97 },
  "ocr-recognition for cpu-int8, calibrated": { ratio: 0.7, sqnrDb: 20 },
  "ocr-detection for cpu-int8, calibrated": { ratio: 0.75, sqnrDb: 18 },
};

/** What is in subgraphs has no static form. */
const calibrated = { scheme: "int8-static", fallback: "int8-weight" } as const;

const cases = models
  .flatMap((model): Case[] => {
    const ofTargets = ["cpu", "cpu-int8"].map((name) => {
      const { recipe } = findTarget(builtinTargets, name);
      return { model, what: `${model} for ${name}`, recipe };
    });
    const calibratedOn = realKinds[model];
    if (calibratedOn !== undefined) {
      const what = `${model} for cpu-int8, calibrated`;
      return [...ofTargets, { model, what, recipe: calibrated, calibratedOn }];
    }
    if (model !== "minilm") return ofTargets;
    const recipe = { scheme: "int8-weight", granularity: "block", operators: "contrib" } as const;
    return [...ofTargets, { model, what: "minilm in int8 blocks", recipe }];
  })
  .filter(({ what }) => wanted.length === 0 || wanted.some((part) => what.includes(part)));

const counts = z.array(z.record(z.string(), z.int()));
const { signal } = new AbortController();
const rows: BenchRow[] = [];
for (const one of cases) rows.push(...(await measureCase(one)));
await reportBench("latency", rows);

async function measureCase({ model, what, recipe, calibratedOn }: Case): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), "latency-"));
  try {
    const originalPath = realModel(model);
    const resultPath = join(folder, "model.onnx");
    const { data, calibration } = await prepareData(model, calibratedOn, folder);
    await compressModel(originalPath, {
      kind: "quantize",
      recipe: resolveRecipe({ ...recipe, ...describeCalibration(calibration) }),
      target,
      outputDirectory: folder,
      signal,
      onProgress: () => {},
      log: print,
      calibrationPath: calibration,
      candidates: createRunner(originalPath, calibration ?? data),
    });
    const candidates = createRunner(originalPath, data);
    const ours = await timeWhole(candidates, resultPath);
    if (ours === undefined) throw new Error(`${what} cannot be timed`);
    const sqnrDb = (await candidates.measureSqnrDb(resultPath)) ?? 0;
    const peer = await timePeer(originalPath, join(folder, "peer.onnx"), candidates);
    const [before, after] = await countOptimizedOperators([originalPath, resultPath]);
    process.stdout.write(`  ${format(before)}\n  ${format(after)}\n`);
    const bar = bars[what];
    const found = [
      {
        what: `${what}: ratio ${formatInterval(ours)}, its upper end`,
        unit: "",
        ours: ours.high,
        peer: peer?.ratio ?? null,
        bar: `<= ${bar?.ratio ?? slowest}`,
        met: bar === undefined ? ours.high <= slowest : ours.ratio <= bar.ratio,
      },
      sqnrRow(`${what}: SQNR`, sqnrDb, bar?.sqnrDb),
    ];
    for (const row of found) process.stdout.write(`${JSON.stringify(row)}\n`);
    return found;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function sqnrRow(what: string, ours: number, least: number | undefined): BenchRow {
  if (least !== undefined) return leastRow(what, "dB", ours, least);
  return { what, unit: "dB", ours, peer: null, bar: "none", met: null };
}

/** Of a kind of real data: samples to measure on, and others to calibrate on. */
async function prepareData(
  model: RealModelName,
  kind: string | undefined,
  folder: string,
): Promise<{ data?: string; calibration?: string }> {
  if (kind === undefined) return model === "minilm" ? { data: minilmData } : {};
  const data = join(folder, "data.npz");
  const calibration = join(folder, "calibration.npz");
  await writeRealSamples(kind, realModel(model), [data, calibration]);
  return { data, calibration };
}

function describeCalibration(file: string | undefined): PartialRecipe {
  return file === undefined
    ? {}
    : { calibration: { data: pathToFileURL(file).href, samples: 128 } };
}

function createRunner(originalPath: string, dataPath: string | undefined): CandidateRunner {
  return createCandidateRunner({
    originalPath,
    evaluation,
    executionProvider: "cpu",
    instructionSets: undefined,
    dataPath,
    signal,
    onProgress: () => {},
    log: print,
  });
}

function print(line: string): void {
  if (/latency|timed/.test(line)) process.stdout.write(`  ${line}\n`);
}

function timeWhole(
  candidates: CandidateRunner,
  path: string,
  share = 1,
): Promise<CandidateRatio | undefined> {
  return candidates.time(path, { share });
}

/** Undefined where ONNX Runtime's quantizer fails or makes a model that does not run. */
async function timePeer(
  originalPath: string,
  path: string,
  candidates: CandidateRunner,
): Promise<CandidateRatio | undefined> {
  try {
    await runPythonFile("../../bench/latency/quantize_defaults.py", [originalPath, path]);
    return await timeWhole(candidates, path, peerShare);
  } catch {
    return undefined;
  }
}

async function countOptimizedOperators(paths: readonly string[]) {
  const printed = await runPythonFile("../../bench/latency/count_operators.py", [...paths]);
  return counts.parse(JSON.parse(printed));
}

function format(operators: Record<string, number> = {}): string {
  return Object.entries(operators)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

function formatInterval({ ratio, low, high }: CandidateRatio): string {
  return `${ratio.toFixed(3)} (${low.toFixed(3)}-${high.toFixed(3)})`;
}
