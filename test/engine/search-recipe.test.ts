import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { findTarget, resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { english, makeCheckpointFolder } from "../support/checkpoint-folder.ts";
import { writeLayeredModel } from "../support/layered-model.ts";
import { realModel } from "../support/real-models.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { hashFile } from "../../scripts/repeat-job.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "search-"))));
after(() => rm(folder, { recursive: true }));

async function layeredModel(): Promise<string> {
  const path = join(folder, "layered.onnx");
  await writeLayeredModel(path);
  return path;
}

const ignore: (message: string, stop: AbortController) => void = () => undefined;
const target = findTarget(builtinTargets, "cpu");
const languageTarget = findTarget(builtinTargets, "cpu-llm");

interface Options {
  readonly onProgress?: typeof ignore;
  readonly on?: typeof target;
  readonly dataPath?: string;
  readonly calibrationPath?: string;
}

async function compress(
  model: string,
  recipe: PartialRecipe,
  { onProgress = ignore, on = target, dataPath, calibrationPath }: Options = {},
) {
  const outputDirectory = await mkdtemp(join(folder, "result-"));
  const stop = new AbortController();
  const report = await compressModel(model, {
    kind: "quantize",
    target: on,
    recipe: resolveRecipe({ evaluation: { samples: 2, latencyBudgetSeconds: 0 }, ...recipe }),
    outputDirectory,
    dataPath,
    calibrationPath,
    signal: stop.signal,
    onProgress: (_, message) => onProgress(message, stop),
    log: () => undefined,
  });
  const hashes = report.files.map(async ({ name }) => hashFile(join(outputDirectory, name)));
  return { report, hashes: await Promise.all(hashes) };
}

test("a goal of accuracy is reached, by a recipe that gives the same bytes again", async () => {
  const auto = { minSqnrDb: 40, samples: 2, points: 0 };
  const { report, hashes } = await compress(realModel("ocr-orientation"), { auto });
  const { search, foundRecipe } = report;
  assert(search?.reached);
  assert.deepEqual(search.missed, []);
  const chosen = search.points.find((point) => point.chosen);
  assert(chosen !== undefined && chosen.sqnrDb >= 40 && chosen.bytes === report.resultBytes);
  assert.equal(foundRecipe?.auto, undefined);
  const again = await compress(realModel("ocr-orientation"), foundRecipe ?? {});
  assert.deepEqual(again.hashes, hashes);
  const sizes = search.points.map(({ bytes }) => bytes);
  assert.deepEqual(
    sizes,
    sizes.toSorted((a, b) => a - b),
  );
});

test("the weight that hurts most is named, and stays as it is for a high goal", async () => {
  const auto = { minSqnrDb: 45, samples: 4, points: 0 };
  const { report } = await compress(await layeredModel(), { auto });
  assert(report.search?.reached);
  assert.equal(report.search.mostSensitive[0]?.name, "bad");
  const forms = new Map(report.weights.map(({ name, form }) => [name, form]));
  assert.equal(forms.get("bad"), null);
  assert.match(forms.get("last") ?? "", /^int8/);
  const alone = report.weights.find(({ name }) => name === "bad")?.outputSqnrDb ?? {};
  assert.deepEqual(Object.keys(alone)[0], "int8-weight in blocks of 32");
});

test("the least loss of a size is found", async () => {
  const auto = { maxBytes: 20_000, minimize: "loss", samples: 4, points: 4 } as const;
  const { report } = await compress(await layeredModel(), { auto });
  assert(report.search?.reached);
  const fitting = report.search.points.filter(({ bytes }) => bytes <= 20_000);
  const chosen = report.search.points.find((point) => point.chosen);
  assert.equal(chosen?.bytes, report.resultBytes);
  assert.equal(chosen.sqnrDb, Math.max(...fitting.map(({ sqnrDb }) => sqnrDb)));
});

test("a goal that cannot be reached gives the nearest result, and says how near it came", async () => {
  const auto = { maxBytes: 1000, minimize: "loss", samples: 4, points: 0 } as const;
  const { report } = await compress(await layeredModel(), { auto });
  assert.equal(report.search?.reached, false);
  assert.equal(report.resultBytes, Math.min(...report.search.points.map(({ bytes }) => bytes)));
  const warning = report.warnings.find(({ code }) => code === "goal_missed");
  assert.match(warning?.message ?? "", /misses the goal: \d+ bytes, at most 1000 wanted$/);
});

test("the most accurate result of a size is taken also where no goal of accuracy is reached", async () => {
  const auto = {
    maxBytes: 20_000,
    minSqnrDb: 149,
    minimize: "loss",
    samples: 4,
    points: 4,
  } as const;
  const { report } = await compress(await layeredModel(), { auto });
  assert.equal(report.search?.reached, false);
  const fitting = report.search.points.filter(({ bytes }) => bytes <= 20_000);
  const chosen = report.search.points.find((point) => point.chosen);
  assert.equal(chosen?.sqnrDb, Math.max(...fitting.map(({ sqnrDb }) => sqnrDb)));
});

test("the smallest result that is accurate enough is taken also where none is small enough", async () => {
  const auto = { maxBytes: 1000, minSqnrDb: 20, samples: 4, points: 4 } as const;
  const { report } = await compress(await layeredModel(), { auto });
  assert.equal(report.search?.reached, false);
  const accurate = report.search.points.filter(({ sqnrDb }) => sqnrDb >= 20);
  assert.equal(report.resultBytes, Math.min(...accurate.map(({ bytes }) => bytes)));
});

test("a budget that ends keeps the best until then", async () => {
  const auto = { minSqnrDb: 20, samples: 4, budgetSeconds: 1 } as const;
  const { report } = await compress(realModel("ocr-orientation"), { auto });
  assert(report.search?.outOfBudget);
  assert(report.warnings.some(({ code }) => code === "search_out_of_budget"));
  assert(report.files.length > 0);
});

test("a search is cancelled while it measures weights", async () => {
  const auto = { minSqnrDb: 20, samples: 4 };
  const cancel = (message: string, stop: AbortController) => {
    if (message.startsWith("Measuring weights: 3")) stop.abort();
  };
  const work = compress(await layeredModel(), { auto }, { onProgress: cancel });
  await assert.rejects(work, { name: "AbortError" });
});

test("a scheme that fuses operators has no meaning for a search that calibrates", async () => {
  const model = join(folder, "normalized.onnx");
  const vectors = ["scale", "shift", "mean", "variance"];
  const noise = (index: number) => Math.sin(index * 12.9898 + index * index * 0.37);
  await writeTinyModel(model, {
    node: [
      node("Conv", ["x", "kernel"], ["a"]),
      node("BatchNormalization", ["a", ...vectors], ["b"]),
      node("MatMul", ["b", "matrix"], ["y"]),
    ],
    input: [tensorInfo("x", [1, 4, 8, 64])],
    output: [tensorInfo("y", [1, 4, 8, 32])],
    initializer: [
      floatInitializer("kernel", [4, 4, 1, 1], noise),
      ...vectors.map((name) => floatInitializer(name, [4], () => 1)),
      floatInitializer("matrix", [64, 32], noise),
    ],
  });
  const auto = { minSqnrDb: 20, samples: 2, points: 0 };
  const calibration = { generated: true, samples: 2 };
  const searched = async (scheme: "int8-weight" | "int8-static") => {
    const { report, hashes } = await compress(model, { scheme, auto, calibration });
    return { fitted: report.calibration?.fittedWeights, hashes };
  };
  const expected = await searched("int8-weight");
  assert.equal(expected.fitted, 1);
  assert.deepEqual(await searched("int8-static"), expected);
});

const language: PartialRecipe = { operators: "contrib", minElements: 0 };

test("a checkpoint gets the least divergence of a size, by what each weight costs on text", async (t) => {
  const checkpoint = join(await makeCheckpointFolder(t, "llama3", english), "config.json");
  const auto = { maxBytes: 67_000, minimize: "loss", samples: 2, points: 2 } as const;
  const on = { on: languageTarget };
  const { report, hashes } = await compress(checkpoint, { ...language, auto }, on);
  const { search, foundRecipe } = report;
  assert(search?.reached, String(search?.missed));
  assert.deepEqual([search.data, search.samples], ["builtin", 2]);
  const sizes = search.points.map(({ bytes }) => bytes);
  assert(Math.max(...sizes) > auto.maxBytes && Math.min(...sizes) < report.resultBytes);
  const fitting = search.points.filter(({ bytes }) => bytes <= auto.maxBytes);
  const chosen = search.points.find((point) => point.chosen);
  assert(chosen?.klDivergence !== undefined && chosen.perplexityRatio !== undefined);
  assert.equal(
    chosen.klDivergence,
    Math.min(...fitting.map(({ klDivergence }) => Number(klDivergence))),
  );
  const forms = new Set(report.weights.map(({ form }) => form?.slice(0, 4)));
  assert(forms.has("int8") && forms.has("int4"), [...forms].join());
  const [first] = search.mostSensitive;
  assert.equal(first?.form, "int4-weight in blocks of 32");
  const measured = report.weights.find(({ name }) => name === first.name)?.outputKlDivergence;
  assert.deepEqual(measured, { [first.form]: first.klDivergence });
  const again = await compress(checkpoint, foundRecipe ?? {}, on);
  assert.deepEqual(again.hashes, hashes);
});

async function writeTokens(checkpoint: string): Promise<string> {
  const file = join(checkpoint, "tokens.jsonl");
  const lines = Array.from(
    { length: 5 },
    (_, line) => `[${line}, 3, 9, 27, 17, 51, 25, 11, 33, 35]`,
  );
  await writeFile(file, lines.join("\n"));
  return file;
}

test("a goal of divergence is reached on the caller's own text, split in two", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3", english);
  const dataPath = await writeTokens(folder);
  const auto = { maxKlDivergence: 0.05, samples: 2, points: 0 };
  const recipe = { ...language, auto, evaluation: { samples: 4, latencyBudgetSeconds: 0 } };
  const options = { on: languageTarget, dataPath };
  const { report } = await compress(join(folder, "config.json"), recipe, options);
  assert(report.search?.reached, String(report.search?.missed));
  const { data, samples, evaluationSamples } = report.search;
  assert.deepEqual([data, samples, evaluationSamples], ["caller", 2, 3]);
  const reaching = report.search.points.filter(
    ({ klDivergence }) => Number(klDivergence) <= auto.maxKlDivergence,
  );
  assert.equal(report.resultBytes, Math.min(...reaching.map(({ bytes }) => bytes)));
});

test("a search measures on the text of its calibration, where that has one", async (t) => {
  const checkpoint = await makeCheckpointFolder(t, "llama3", english);
  const calibrationPath = await writeTokens(checkpoint);
  const recipe = {
    ...language,
    auto: { maxKlDivergence: 0.05, samples: 3, points: 0 },
    calibration: { data: `upload:sha256:${"0".repeat(64)}`, samples: 2 },
  };
  const options = { on: languageTarget, calibrationPath };
  const { report } = await compress(join(checkpoint, "config.json"), recipe, options);
  const { data, samples, evaluationSamples } = report.search ?? {};
  assert.deepEqual([data, samples, evaluationSamples], ["caller", 3, undefined]);
});

const refused: [name: string, recipe: PartialRecipe, message: RegExp][] = [
  [
    "no goal",
    { auto: {} },
    /minimizes bytes: give `minSqnrDb`, `minCosine`, `minTop1`, .* or `maxKlDivergence`/,
  ],
  ["a loss without a size", { auto: { minimize: "loss" } }, /minimizes the loss: give `maxBytes`/],
  [
    "overrides besides",
    { auto: { minSqnrDb: 30 }, overrides: [{ match: "a", scheme: "int8-weight" }] },
    /finds the overrides: give none/,
  ],
  [
    "a perplexity of a model that reads no text",
    { auto: { maxPerplexityRatio: 1.1 } },
    /`maxPerplexityRatio` is one of language models/,
  ],
  ["several pods", { auto: { minSqnrDb: 30 }, parallelism: 2 }, /parallelism must be 1/],
  [
    "an evaluation without outputs",
    { auto: { minSqnrDb: 30 }, evaluation: { level: "weights" } },
    /the evaluation's level is weights/,
  ],
];
for (const [name, recipe, message] of refused) {
  test(`${name} is refused for a search`, async () => {
    const error = { code: "recipe_unsupported", message };
    await assert.rejects(compress(await layeredModel(), recipe), error);
  });
}
