import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { at } from "../../src/engine/onnx/at.ts";
import { sha256Of } from "../storage/blob-content.ts";
import { english, makeCheckpointFolder } from "../support/checkpoint-folder.ts";
import { exitCode, makeJob, summarizeEvents } from "./worker-process.ts";

const int4: PartialRecipe = {
  scheme: "int4-weight",
  granularity: "block",
  blockSize: 32,
  operators: "contrib",
  minElements: 0,
};

const contrib = at(builtinTargets, 1);

test("a folder becomes one that runs, with an archive of it", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3");
  const source = `${pathToFileURL(folder).href}/`;
  const { service, start } = await makeJob(t, source, { target: contrib, recipe: int4 });
  assert.equal(await exitCode(start()), workerExit.completed);
  const { artifacts, telemetry } = summarizeEvents(service.events);
  assert.deepEqual(
    artifacts.map(({ name, kind }) => [name, kind]),
    [
      ["model.onnx", "model"],
      ["model-00001-of-00001.bin", "weights"],
      ["model.index.json", "manifest"],
      ["genai_config.json", "configuration"],
      ["tokenizer.json", "configuration"],
      ["generation_config.json", "configuration"],
      ["graph.json", "graph"],
      ["report.json", "report"],
      ["model.tar", "archive"],
    ],
  );
  assert(Number(telemetry.accuracy?.cosine) > 0.9, JSON.stringify(telemetry.accuracy));
  assert.equal(telemetry.accuracy?.data, "generated");
  assert.equal(telemetry.accuracy.language, undefined);
  const codes = telemetry.warnings?.map(({ code }) => code);
  assert.ok(codes?.includes("text_not_tokenized"), String(codes));
  assert.deepEqual((await readdir(folder)).includes("tokenizer.json"), true);
});

test("a folder without a tokenizer is refused before any work, also by a dry run", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3");
  await rm(path.join(folder, "tokenizer.json"));
  const source = `${pathToFileURL(folder).href}/`;
  for (const dryRun of [true, false]) {
    const job = { target: contrib, recipe: int4, dryRun };
    const { service, start } = await makeJob(t, source, job);
    assert.equal(await exitCode(start()), workerExit.failed);
    const result = service.events.at(-1);
    assert(result?.type === "result");
    assert.equal(result.error?.message, "The folder has no tokenizer.json");
    const { statuses } = summarizeEvents(service.events);
    assert.ok(!statuses.includes("Optimizing"), statuses.join());
  }
});

test("a checkpoint is compared on the built-in text, or on the caller's", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3", english);
  const source = `${pathToFileURL(folder).href}/`;
  const run = async (data: PartialRecipe["evaluation"]) => {
    const evaluation = { samples: 3, latencyBudgetSeconds: 0, ...data };
    const recipe = { ...int4, evaluation };
    const { service, start } = await makeJob(t, source, { target: contrib, recipe });
    assert.equal(await exitCode(start()), workerExit.completed);
    return summarizeEvents(service.events).telemetry.accuracy;
  };
  const builtin = await run({});
  assert.equal(builtin?.data, "builtin");
  assert.equal(builtin.samples, 3);
  assert.ok(Number(builtin.language?.klDivergence) > 0, JSON.stringify(builtin));
  assert.ok(Number(builtin.language?.originalPerplexity) > 1, JSON.stringify(builtin));
  const text = path.join(folder, "text.txt");
  const content = "the light of the sun is in the water, and the bread is not";
  await writeFile(text, content);
  const own = await run({ data: pathToFileURL(text).href });
  assert.equal(own?.data, "caller");
  assert.equal(own.dataSha256, sha256Of(content));
  assert.equal(own.language?.tokens, 14);
});
