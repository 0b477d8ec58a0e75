import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createCandidateRunner } from "../../src/engine/candidate-runner.ts";
import { writeRunnableOriginal } from "../../src/engine/language/runnable-original.ts";
import { english, makeCheckpointFolder } from "../support/checkpoint-folder.ts";

test("candidates of a decoder are compared on the caller's tokens", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3", english);
  const { signal } = new AbortController();
  const model = await writeRunnableOriginal(join(folder, "config.json"), "cpu", folder, signal);
  const dataPath = join(folder, "tokens.jsonl");
  await writeFile(dataPath, "[1, 3, 9, 27, 17]\n[2, 51, 25, 11, 33]");
  const lines: string[] = [];
  const runner = createCandidateRunner({
    originalPath: model,
    evaluation: { samples: 2, latencyBudgetSeconds: 0 },
    executionProvider: "cpu",
    instructionSets: undefined,
    dataPath,
    signal,
    onProgress: () => undefined,
    log: (line) => lines.push(line),
  });
  assert.equal(await runner.measureSqnrDb(model), 150, lines.join("\n"));
});
