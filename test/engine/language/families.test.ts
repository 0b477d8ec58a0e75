import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { InferenceSession } from "onnxruntime-node";
import { z } from "zod";
import { openOriginal } from "../../../src/engine/language/open-original.ts";
import { writeModel } from "../../../src/engine/onnx/write-model.ts";
import { promptFeeds } from "../../support/prompt-feeds.ts";

const recorded = z.object({ tokens: z.array(z.int()), logits: z.array(z.array(z.number())) });
const checkpoints = fileURLToPath(new URL("checkpoints", import.meta.url));

/** Largest difference of a logit from the one that transformers computed. */
async function largestDifference(family: string, provider: "cpu" | "cuda"): Promise<number> {
  const folder = path.join(checkpoints, family);
  const model = await openOriginal(path.join(folder, "config.json"), 1e9, provider);
  const directory = await mkdtemp(path.join(tmpdir(), "family-"));
  try {
    await writeModel(model, { directory, name: "model" });
    const session = await InferenceSession.create(path.join(directory, "model.onnx"));
    const text = await readFile(path.join(folder, "logits.json"), "utf8");
    const { tokens, logits } = recorded.parse(JSON.parse(text));
    const { logits: found } = await session.run(promptFeeds(session, tokens), ["logits"]);
    assert(found?.data instanceof Float32Array);
    const differences = logits.flat().map((value, i) => Math.abs(value - Number(found.data[i])));
    assert.equal(differences.length, found.data.length);
    await session.release();
    return Math.max(...differences);
  } finally {
    await rm(directory, { recursive: true });
  }
}

for (const family of ["llama", "llama3", "mistral", "qwen2", "qwen3", "phi3", "gemma2", "gemma3"]) {
  test(`a ${family} checkpoint has the logits of transformers, also beyond its window`, async () => {
    const difference = await largestDifference(family, "cpu");
    assert(difference < 1e-4, `a logit differs by ${difference}`);
  });

  test(`in half precision, as GPUs run it, logits of ${family} are nearly the same`, async () => {
    const difference = await largestDifference(family, "cuda");
    assert(difference < 0.05, `a logit differs by ${difference}`);
  });
}
