import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findTarget, resolveRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import type { SearchPoint, SearchSummary } from "../src/contract/jobs/search.ts";
import { builtinTargets } from "../src/contract/jobs/target.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import { minilmData, realModel, type RealModelName } from "../test/support/real-models.ts";
import { type BenchRow, leastRow, limitRow, reportBench } from "./result.ts";
import { evaluateResult } from "./samples/evaluate-result.ts";
import { realKinds, writeRealSamples, writeSentences } from "./samples/real-samples.ts";

/**
 * What a search for a recipe promises: that the goal holds, on how many bytes, and how near the
 * front of size and loss is to what was predicted. Arguments: names of models, or `front`, by
 * default all.
 */
const wanted = process.argv.slice(3);

/** Least SQNR of results, dB: one that not every form of a model reaches. */
const goals = {
  minilm: 30,
  "ocr-recognition": 30,
  "ocr-detection": 30,
  "page-orientation": 75,
  "voice-without-if": 30,
} as const satisfies Partial<Record<RealModelName, number>>;
type Searched = keyof typeof goals;

/** Of the evaluation, as many of the search, and twice as many that are fresh. */
const samples = 16;
/** How far the goal may be missed on fresh ones, dB: two of 16 differ by 0.7 dB or so. */
const freshDb = 1;
/** Of the front: points, time, and how far a predicted SQNR may be from the measured one. */
const front = { points: 20, seconds: 300, within: 0.1 };
const signal = new AbortController().signal;

const folder = await mkdtemp(join(tmpdir(), "auto-"));
const rows: BenchRow[] = [];
try {
  for (const model of Object.keys(goals) as Searched[]) {
    if (isWanted(model)) rows.push(...(await measureGoal(model)));
  }
  if (isWanted("front")) rows.push(...(await measureFront()));
} finally {
  await rm(folder, { recursive: true });
}
await reportBench("auto", rows);

function isWanted(part: string): boolean {
  return wanted.length === 0 || wanted.includes(part);
}

/** Real data: of the evaluation with that of the search after it, and other. */
async function prepareData(model: Searched): Promise<{ data: string; fresh: string }> {
  const kind = realKinds[model];
  const count = 2 * samples;
  const fresh = join(folder, `${model}-fresh.npz`);
  if (kind === undefined) {
    await writeSentences(fresh, count);
    return { data: minilmData, fresh };
  }
  const data = join(folder, `${model}.npz`);
  await writeRealSamples(kind, realModel(model), [data, fresh], count);
  return { data, fresh };
}

async function search(model: Searched, dataPath: string, points: number) {
  const minSqnrDb = goals[model];
  const outputDirectory = await mkdtemp(join(folder, "result-"));
  const { search: summary } = await compressModel(realModel(model), {
    kind: "quantize",
    recipe: resolveRecipe({
      auto: { minSqnrDb, samples, points, budgetSeconds: 3600 },
      evaluation: { data: pathToFileURL(dataPath).href, samples, latencyBudgetSeconds: 0 },
    }),
    target: findTarget(builtinTargets, "cpu"),
    outputDirectory,
    dataPath,
    signal,
    onProgress: () => undefined,
    log: (line) => process.stdout.write(`${line}\n`),
  });
  if (summary === undefined) throw new TypeError("A search has no summary");
  return { summary, resultPath: join(outputDirectory, "model.onnx") };
}

async function measureGoal(model: Searched): Promise<BenchRow[]> {
  const minSqnrDb = goals[model];
  const { data, fresh } = await prepareData(model);
  const { summary, resultPath } = await search(model, data, 0);
  const evaluating = { originalPath: realModel(model), resultPath, scratchDirectory: folder };
  const readSqnrDb = async (dataPath: string, count: number) => {
    const { accuracy } = await evaluateResult({ ...evaluating, dataPath, samples: count });
    return accuracy?.sqnrDb ?? NaN;
  };
  const evaluated = await readSqnrDb(data, samples);
  const unseen = await readSqnrDb(fresh, 2 * samples);
  return [
    leastRow(`${model}: SQNR on the evaluation's samples`, "dB", evaluated, minSqnrDb),
    leastRow(`${model}: SQNR on fresh samples`, "dB", unseen, minSqnrDb - freshDb),
    compareUniform(model, (await stat(resultPath)).size, summary),
  ];
}

/** Beside the smallest result of one form that reaches the goal. */
function compareUniform(model: Searched, bytes: number, { points }: SearchSummary): BenchRow {
  const minSqnrDb = goals[model];
  const reaching = points.filter(({ form, sqnrDb }) => form !== undefined && sqnrDb >= minSqnrDb);
  const [best] = reaching.toSorted((a, b) => a.bytes - b.bytes);
  const form = best?.form ?? "none, no uniform form reaches the goal";
  return {
    what: `${model}: size, best uniform form: ${form}`,
    unit: "bytes",
    ours: bytes,
    peer: best?.bytes ?? null,
    bar: best === undefined ? "none" : "ours < peer",
    met: best === undefined ? null : bytes < best.bytes,
  };
}

async function measureFront(): Promise<BenchRow[]> {
  const { points } = front;
  const { summary } = await search("minilm", minilmData, points);
  const misses = summary.points.flatMap(describeMiss);
  const near = misses.filter((miss) => miss <= front.within);
  return [
    limitRow(`front of minilm, ${points} points: time`, "s", summary.seconds, front.seconds),
    limitRow(
      `front of minilm: predicted SQNR from the measured one, at worst of ${misses.length} points, ` +
        `${near.length} of them within ${100 * front.within} %`,
      "%",
      100 * Math.max(...misses),
      100 * front.within,
    ),
  ];
}

/** How far the predicted SQNR of a point is from the measured one, as a share of that. */
function describeMiss({ bytes, sqnrDb, predictedSqnrDb }: SearchPoint): number[] {
  if (predictedSqnrDb === undefined) return [];
  const miss = Math.abs(predictedSqnrDb - sqnrDb) / Math.abs(sqnrDb);
  const figures = [bytes, sqnrDb.toFixed(2), predictedSqnrDb.toFixed(2), miss.toFixed(3)];
  process.stdout.write(`Point: ${figures.join(", ")}\n`);
  return [miss];
}
