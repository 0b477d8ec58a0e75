import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { compressFile } from "../../src/compress/compress-file.ts";
import { english, makeCheckpointFolder } from "../support/checkpoint-folder.ts";
import { writeLayeredModel } from "../support/layered-model.ts";
import { writeFloatsNpz } from "../support/npz.ts";
import { realModel } from "../support/real-models.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "compress-file-"))));
after(() => rm(folder, { recursive: true }));

const model = realModel("ocr-orientation");
const ignore = { onProgress: () => undefined, log: () => undefined };
const quiet = { ...ignore, signal: new AbortController().signal };

test("a file is compressed and evaluated without a service", async () => {
  const out = join(folder, "result");
  const recipe = join(folder, "recipe.json");
  await writeFile(recipe, '{"evaluation": {"latencyBudgetSeconds": 0}}');
  const lines: string[] = [];
  const args = [model, "--target", "cpu-int8", "--recipe", recipe, "--out", out];
  await compressFile(args, { ...quiet, log: (line) => lines.push(line) });
  assert.deepEqual(await readdir(out), ["model.onnx", "report.json"]);
  const report = JSON.parse(await readFile(join(out, "report.json"), "utf8"));
  assert.deepEqual([report.recipe.scheme, report.accuracy.level], ["int8-dynamic", "outputs"]);
  assert.match(report.generated[0].content, /^text on pages/);
  assert(lines.some((line) => line.startsWith("Accuracy: SQNR ")));
});

test("a file for another runtime is run by the kernels here, and not timed", async () => {
  const layered = join(folder, "layered-tensorrt.onnx");
  await writeLayeredModel(layered);
  const recipe = join(folder, "tensorrt.json");
  const calibration = { generated: true, samples: 2, method: "minmax" };
  await writeFile(
    recipe,
    JSON.stringify({ scheme: "int8-static", dialect: "tensorrt", calibration }),
  );
  const out = join(folder, "tensorrt");
  const lines: string[] = [];
  await compressFile([layered, "--recipe", recipe, "--out", out], {
    ...quiet,
    log: (line) => lines.push(line),
  });
  const report = JSON.parse(await readFile(join(out, "report.json"), "utf8"));
  assert.deepEqual([report.qdq.runtime, report.qdq.unfused], ["TensorRT", []]);
  assert.ok(report.accuracy.sqnrDb > 20, `${report.accuracy.sqnrDb} dB`);
  assert.equal(report.latency, undefined);
  assert.ok(lines.includes(`Integers: ${report.qdq.operators} operators in TensorRT`));
  const message =
    "Warning: Latency was not timed: the result is for TensorRT, and was run by ONNX Runtime's own kernels";
  assert.ok(lines.includes(message));
});

test("samples serve both the calibration of the recipe and the evaluation", async () => {
  const layered = join(folder, "layered-calibrated.onnx");
  await writeLayeredModel(layered);
  const values = Array.from({ length: 6 * 64 }, (_, index) => Math.cos(index));
  const data = await writeFloatsNpz(folder, "x", { shape: [6, 1, 64], values });
  const recipe = join(folder, "calibrated.json");
  const evaluation = { samples: 2, latencyBudgetSeconds: 0, minCosine: 0 };
  await writeFile(recipe, JSON.stringify({ scheme: "int4-weight", calibration: {}, evaluation }));
  const out = join(folder, "calibrated");
  await compressFile([layered, "--recipe", recipe, "--data", data, "--out", out], quiet);
  const report = JSON.parse(await readFile(join(out, "report.json"), "utf8"));
  const expected = { data: "caller", samples: 4, evaluationSamples: 2, fittedWeights: 3 };
  assert.deepEqual([report.calibration, report.accuracy.samples], [expected, 2]);
  const codes = report.warnings.map(({ code }: { readonly code: string }) => code);
  assert.ok(!codes.includes("samples_left_out"), "the calibration used the others");
});

test("ranges are those of the highest SQNR also where no latency is measured", async () => {
  const layered = join(folder, "layered-static.onnx");
  await writeLayeredModel(layered);
  const recipe = join(folder, "static.json");
  const calibration = { generated: true, samples: 2 };
  const evaluation = { samples: 2, latencyBudgetSeconds: 0 };
  await writeFile(recipe, JSON.stringify({ scheme: "int8-static", calibration, evaluation }));
  const lines: string[] = [];
  const out = join(folder, "static");
  await compressFile([layered, "--recipe", recipe, "--out", out], {
    ...quiet,
    log: (line) => lines.push(line),
  });
  const pattern = /^With ranges of activations by (\w+): SQNR (\S+) dB$/;
  const measured = lines.flatMap((line) => {
    const [, method, sqnrDb] = pattern.exec(line) ?? [];
    return method === undefined ? [] : [{ method, sqnrDb: Number(sqnrDb) }];
  });
  assert.equal(measured.length, 4);
  const { calibration: found } = JSON.parse(await readFile(join(out, "report.json"), "utf8"));
  const best = Math.max(...measured.map(({ sqnrDb }) => sqnrDb));
  assert.equal(measured.find(({ method }) => method === found.method)?.sqnrDb, best);
});

test("the smallest result for a goal comes with the recipe that makes it again", async () => {
  const layered = join(folder, "layered.onnx");
  await writeLayeredModel(layered);
  const recipe = join(folder, "short.json");
  await writeFile(
    recipe,
    '{"auto": {"samples": 2, "points": 0}, "evaluation": {"samples": 2, "latencyBudgetSeconds": 0}}',
  );
  const out = join(folder, "searched");
  const args = [layered, "--target", "cpu-int8", "--recipe", recipe, "--goal", "minSqnrDb=30"];
  await compressFile([...args, "--goal", "minCosine=0.9", "--out", out], quiet);
  assert.deepEqual(await readdir(out), ["model.onnx", "recipe.json", "report.json"]);
  const report = JSON.parse(await readFile(join(out, "report.json"), "utf8"));
  assert.deepEqual([report.search.reached, report.accuracy.sqnrDb >= 30], [true, true]);
  const again = join(folder, "again");
  const found = join(out, "recipe.json");
  await compressFile([layered, "--target", "cpu-int8", "--recipe", found, "--out", again], quiet);
  const models = [out, again].map((each) => readFile(join(each, "model.onnx")));
  const [first, second] = await Promise.all(models);
  assert.deepEqual(first, second);
});

test("a checkpoint becomes a folder that is run, compared on text", async (t) => {
  const checkpoint = await makeCheckpointFolder(t, "llama3", english);
  const recipe = join(folder, "language.json");
  const fields = { minElements: 0, evaluation: { samples: 1, latencyBudgetSeconds: 0 } };
  await writeFile(recipe, JSON.stringify(fields));
  const out = join(folder, "language");
  const args = [join(checkpoint, "config.json"), "--target", "cpu-llm", "--recipe", recipe];
  await compressFile([...args, "--out", out], quiet);
  assert.deepEqual(await readdir(out), [
    "genai_config.json",
    "generation_config.json",
    "model-00001-of-00001.bin",
    "model.index.json",
    "model.onnx",
    "report.json",
    "tokenizer.json",
  ]);
  const report = JSON.parse(await readFile(join(out, "report.json"), "utf8"));
  assert.ok(report.accuracy.language.originalPerplexity > 1, JSON.stringify(report.accuracy));
});

test("a cancelled compression leaves nothing", async () => {
  const out = join(folder, "cancelled");
  const recipe = join(folder, "untimed.json");
  await writeFile(recipe, '{"evaluation": {"latencyBudgetSeconds": 0}}');
  const stop = new AbortController();
  const working = compressFile([model, "--recipe", recipe, "--out", out], {
    ...ignore,
    signal: stop.signal,
    onProgress: (_, message) => message === "Running the original" && stop.abort(),
  });
  await assert.rejects(working, { name: "AbortError" });
  assert(!(await readdir(folder)).includes("cancelled"));
});

const wrong: [name: string, args: (out: string) => string[], message: RegExp][] = [
  ["no model", (out) => ["--out", out], /The model's file is missing/],
  ["no folder", () => [model], /--out is missing/],
  [
    "a model that is not there",
    (out) => ["none.onnx", "--out", out],
    /"none.onnx", which is not a file/,
  ],
  [
    "an unknown target",
    (out) => [model, "--target", "tpu", "--out", out],
    /"tpu" is not one of cpu/,
  ],
  ["an unknown option", (out) => [model, "--fast", "--out", out], /'--fast'/],
  [
    "data that is not there",
    (out) => [model, "--data", "x.npz", "--out", out],
    /--data is "x.npz"/,
  ],
  [
    "an unknown goal",
    (out) => [model, "--goal", "minPsnr=3", "--out", out],
    /--goal "minPsnr=3" is not one of minSqnrDb, minCosine, minTop1, maxPerplexityRatio, maxKlDivergence, maxBytes/,
  ],
  [
    "a goal without a number",
    (out) => [model, "--goal", "minSqnrDb=good", "--out", out],
    /--goal "minSqnrDb=good" has to be minSqnrDb= and a number/,
  ],
  [
    "a goal out of its range",
    (out) => [model, "--goal", "minCosine=2", "--out", out],
    /--goal minCosine is 2 and must be at most 1/,
  ],
  ["two models", (out) => [model, "b.onnx", "--out", out], /"b.onnx" is another/],
];
for (const [name, args, message] of wrong) {
  test(`${name} is named, and leaves nothing`, async () => {
    const out = join(folder, "wrong");
    await assert.rejects(compressFile(args(out), quiet), { message });
    assert(!(await readdir(folder)).includes("wrong"));
  });
}

test("a folder with files and a wrong recipe are named", async () => {
  const out = join(folder, "full");
  await mkdir(out);
  await writeFile(join(out, "mine.txt"), "");
  await assert.rejects(compressFile([model, "--out", out], quiet), /has files such as "mine.txt"/);
  assert.deepEqual(await readdir(out), ["mine.txt"]);
  const recipe = join(folder, "wrong.json");
  await writeFile(recipe, '{"scheme": "int3"}');
  const args = [model, "--recipe", recipe, "--out", join(folder, "other")];
  await assert.rejects(compressFile(args, quiet), /wrong.json": scheme is "int3"/);
  await writeFile(recipe, '{"evaluation": {"data": "https://example.com/a.npz"}}');
  await assert.rejects(compressFile(args, quiet), /names data that a service fetches/);
});
