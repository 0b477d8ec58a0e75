import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { workerExit } from "../../src/contract/jobs/worker-exit.ts";
import { at } from "../../src/engine/onnx/at.ts";
import { exitCode, makeJob, summarizeEvents } from "./worker-process.ts";

const checkpoints = fileURLToPath(new URL("../engine/language/checkpoints", import.meta.url));
const int4: PartialRecipe = {
  scheme: "int4-weight",
  granularity: "block",
  blockSize: 32,
  operators: "contrib",
  minElements: 0,
};

/** A folder as a repository has it: with a tokenizer of words of one letter. */
async function makeFolder(t: TestContext, family: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "checkpoint-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(path.join(checkpoints, family), folder, { recursive: true });
  const vocab = Object.fromEntries(Array.from({ length: 64 }, (_, id) => [`t${id}`, id]));
  const model = { type: "WordLevel", vocab, unk_token: "t0" };
  await writeFile(path.join(folder, "tokenizer.json"), JSON.stringify({ version: "1.0", model }));
  return folder;
}

const contrib = at(builtinTargets, 1);

test("a folder becomes one that runs, with an archive of it", async (t) => {
  const folder = await makeFolder(t, "llama3");
  const source = `${pathToFileURL(folder).href}/`;
  const { service, start } = await makeJob(t, source, { target: contrib, recipe: int4 });
  assert.equal(await exitCode(start()), workerExit.completed);
  const { artifacts, telemetry } = summarizeEvents(service.events);
  assert.deepEqual(
    artifacts.map(({ name, kind }) => [name, kind]),
    [
      ["model.onnx", "model"],
      ["genai_config.json", "configuration"],
      ["tokenizer.json", "configuration"],
      ["generation_config.json", "configuration"],
      ["graph.json", "graph"],
      ["report.json", "report"],
      ["model.tar", "archive"],
    ],
  );
  assert(Number(telemetry.accuracy?.cosine) > 0.9, JSON.stringify(telemetry.accuracy));
  assert.deepEqual((await readdir(folder)).includes("tokenizer.json"), true);
});
