import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { PartialRecipe } from "../src/contract/jobs/recipe.ts";
import { defaultRecipe, resolveRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../src/contract/jobs/target.ts";
import { createCandidateRunner } from "../src/engine/candidate-runner.ts";
import type { CandidateRatio, CandidateRunner } from "../src/engine/candidate.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import { runPythonFile } from "../test/support/python.ts";
import { minilmData, realModel, type RealModelName } from "../test/support/real-models.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * Latency of results relative to their originals, timed in pairs, beside that of what ONNX
 * Runtime's own quantizer makes at its defaults. Arguments: names of models, all without them.
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
/** Seconds to choose formats in, and as many again to time the result: the default's. */
const { latencyBudgetSeconds } = defaultRecipe.evaluation;
/** Of the budget, for the peer's: the interval may be wider. */
const peerShare = 0.3;
/** Most that a result may be slower: the upper end of the ratio's interval. */
const slowest = 1.03;

interface Case {
  readonly model: RealModelName;
  readonly what: string;
  readonly recipe: PartialRecipe;
  readonly bar: number;
}

const bars: Readonly<Record<string, number>> = {
  "minilm for cpu-int8": 0.45,
  "ocr-recognition for cpu-int8": 0.97,
};

const cases = models
  .filter((model) => wanted.length === 0 || wanted.includes(model))
  .flatMap((model): Case[] => {
    const ofTargets = builtinTargets.map(({ name, recipe }) => {
      const what = `${model} for ${name}`;
      return { model, what, recipe, bar: bars[what] ?? slowest };
    });
    if (model !== "minilm") return ofTargets;
    const recipe = { scheme: "int8-weight", granularity: "block", operators: "contrib" } as const;
    return [...ofTargets, { model, what: "minilm in int8 blocks", recipe, bar: 0.85 }];
  });

const counts = z.array(z.record(z.string(), z.int()));
const { signal } = new AbortController();
const rows: BenchRow[] = [];
for (const one of cases) rows.push(...(await measureCase(one)));
await reportBench("latency", rows);

async function measureCase({ model, what, recipe, bar }: Case): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), "latency-"));
  try {
    const originalPath = realModel(model);
    const candidates = createRunner(originalPath, model);
    await compress(originalPath, folder, { recipe, candidates });
    const resultPath = join(folder, "model.onnx");
    const ours = await timeWhole(candidates, resultPath);
    if (ours === undefined) throw new Error(`${what} cannot be timed`);
    const sqnrDb = await candidates.measureSqnrDb(resultPath);
    const peer = await timePeer(originalPath, join(folder, "peer.onnx"), candidates);
    const [before, after] = await countOptimizedOperators([originalPath, resultPath]);
    process.stdout.write(`  ${format(before)}\n  ${format(after)}\n`);
    return [
      {
        what: `${what}: ratio ${formatInterval(ours)}, its upper end`,
        unit: "",
        ours: ours.high,
        peer: peer?.ratio ?? null,
        bar: `<= ${bar}`,
        met: (bar === slowest ? ours.high : ours.ratio) <= bar,
      },
      { what: `${what}: SQNR`, unit: "dB", ours: sqnrDb ?? 0, peer: null, bar: "none", met: null },
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}

function createRunner(originalPath: string, model: RealModelName): CandidateRunner {
  return createCandidateRunner({
    originalPath,
    evaluation: { samples: 2, latencyBudgetSeconds },
    executionProvider: "cpu",
    instructionSets: undefined,
    dataPath: model === "minilm" ? minilmData : undefined,
    signal,
    onProgress: () => {},
    log: print,
  });
}

async function compress(
  originalPath: string,
  outputDirectory: string,
  { recipe, candidates }: Pick<Case, "recipe"> & { candidates: CandidateRunner },
): Promise<void> {
  const [, target] = builtinTargets;
  if (target === undefined) throw new Error("No built-in target");
  await compressModel(originalPath, {
    kind: "quantize",
    recipe: resolveRecipe(recipe),
    target,
    outputDirectory,
    signal,
    onProgress: () => {},
    log: print,
    candidates,
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
