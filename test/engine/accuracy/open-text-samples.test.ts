import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { openLaterText } from "../../../src/engine/accuracy/open-text-samples.ts";
import type { RunnableModel } from "../../../src/engine/runtime/model-session.ts";

const ids = {
  name: "input_ids",
  isTensor: true,
  type: "int64",
  shape: ["batch", "tokens"],
} as const;
const cache = { isTensor: true, type: "float32", shape: ["batch", 1, "past", 16] } as const;
const logits = { isTensor: true, type: "float32", shape: ["batch", "tokens", 100] } as const;
const decoder: RunnableModel = {
  signature: {
    inputs: [
      { ...ids, shape: [...ids.shape] },
      { name: "past.0.key", ...cache, shape: [...cache.shape] },
    ],
    outputs: [{ name: "logits", ...logits, shape: [...logits.shape] }],
  },
  run: () => Promise.reject(new Error("Text is only read")),
};

/** Lines of two tokens; the second one is the line's number. */
async function openLines(t: TestContext, lines: number, wanted: number, samples: number) {
  const folder = await mkdtemp(path.join(tmpdir(), "text-"));
  t.after(() => rm(folder, { recursive: true }));
  const dataPath = path.join(folder, "tokens.jsonl");
  const texts = Array.from({ length: lines }, (_, line) => JSON.stringify([0, line]));
  await writeFile(dataPath, texts.join("\n"));
  const text = await openLaterText(decoder, { dataPath, evaluationSamples: wanted, samples });
  const taken = text?.windows?.map(([, line]) => line);
  return { evaluation: text?.evaluationSamples, taken };
}

test("an evaluation has the windows that it wants, however few come after them", async (t) => {
  const found = await openLines(t, 40, 16, 4);
  assert.deepEqual(found, { evaluation: 16, taken: [16, 17, 18, 19] });
});

test("an evaluation has half of a short text, and no more windows are taken than asked for", async (t) => {
  const found = await openLines(t, 20, 16, 4);
  assert.deepEqual(found, { evaluation: 10, taken: [10, 11, 12, 13] });
});
