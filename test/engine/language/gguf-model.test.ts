import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { InferenceSession } from "onnxruntime-node";
import { z } from "zod";
import { CheckpointValues } from "../../../src/engine/checkpoints/checkpoint-values.ts";
import { CheckpointWeights } from "../../../src/engine/language/checkpoint-weights.ts";
import { openOriginal } from "../../../src/engine/language/open-original.ts";
import { readFolderTensors } from "../../../src/engine/language/read-folder-tensors.ts";
import { writeModel } from "../../../src/engine/onnx/write-model.ts";
import { promptFeeds } from "../../support/prompt-feeds.ts";

const recordedFiles = z.record(
  z.string(),
  z.object({ start: z.base64(), tensors: z.array(z.string()) }),
);
const recordedLogits = z.object({ tokens: z.array(z.int()), logits: z.array(z.array(z.number())) });
const readRecorded = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(name, import.meta.url), "utf8"));
const files = recordedFiles.parse(await readRecorded("gguf.json"));

/** Puts the second half of each head's rows between those of the first, as for Llama. */
function interleave(values: Float32Array, rowLength: number, headSize: number): Float32Array {
  const into = new Float32Array(values.length);
  for (let row = 0; row < values.length / rowLength; row++) {
    const [within, half] = [row % headSize, headSize / 2];
    const place = row - within + 2 * (within % half) + Math.floor(within / half);
    into.set(values.subarray(row * rowLength, (row + 1) * rowLength), place * rowLength);
  }
  return into;
}

/** A recorded file with the values of a checkpoint's folder, as the converter writes them. */
async function makeGguf(
  t: TestContext,
  recorded: string,
  change: (start: Buffer) => void = () => undefined,
): Promise<string> {
  const [family = ""] = recorded.split(" ");
  const folder = fileURLToPath(new URL(`checkpoints/${family}`, import.meta.url));
  const { tensors } = readFolderTensors(folder);
  const weights = new CheckpointWeights(tensors);
  const { start, tensors: names } = files[recorded] ?? { start: "", tensors: [] };
  const parts = names.map((name) => {
    const dims = tensors.get(name)?.dims ?? [];
    using stored = new CheckpointValues([weights.take(name, dims)]);
    const values = new Float32Array(dims.reduce((product, size) => product * size, 1));
    stored.read(0, values);
    const isInterleaved = family === "llama3" && /[qk]_proj/.test(name);
    return isInterleaved ? interleave(values, dims[1] ?? 1, 16) : values;
  });
  const file = path.join(await mkdtemp(path.join(tmpdir(), "gguf-")), "model.gguf");
  t.after(() => rm(path.dirname(file), { recursive: true }));
  const first = Buffer.from(start, "base64");
  change(first);
  const rest = parts.map(({ buffer }) => Buffer.from(buffer));
  await writeFile(file, Buffer.concat([first, ...rest]));
  return file;
}

for (const family of ["llama3", "qwen2", "qwen3"]) {
  test(`a GGUF file of ${family} has the logits of its checkpoint in transformers`, async (t) => {
    const file = await makeGguf(t, family);
    const directory = path.dirname(file);
    await writeModel(await openOriginal(file, 1e9), { directory, name: "model" });
    const session = await InferenceSession.create(path.join(directory, "model.onnx"));
    const content = await readRecorded(`checkpoints/${family}/logits.json`);
    const { tokens, logits } = recordedLogits.parse(content);
    const { logits: found } = await session.run(promptFeeds(session, tokens), ["logits"]);
    await session.release();
    assert(found?.data instanceof Float32Array);
    const differences = logits.flat().map((value, i) => Math.abs(value - Number(found.data[i])));
    assert.equal(differences.length, found.data.length);
    const largest = Math.max(...differences);
    assert(largest < 1e-4, `a logit differs by ${largest}`);
  });
}

const refusals: readonly [recorded: string, message: RegExp][] = [
  [
    "qwen2 with YaRN",
    /^model\.gguf: the metadata "qwen2\.rope\.scaling\.type" is not known; the known ones are qwen2\.block/,
  ],
  ["qwen3 in two files", /^model\.gguf: split\.count 2 is not known; the known ones are 0, 1$/],
];

for (const [recorded, message] of refusals) {
  test(`a file of ${recorded} is refused`, async (t) => {
    const file = await makeGguf(t, recorded);
    await assert.rejects(openOriginal(file, 1e9), { code: "model_unsupported", message });
  });
}

test("a frequency that is divided by zero is refused", async (t) => {
  const file = await makeGguf(t, "llama3", (start) => start.fill(0, start.length - 4));
  await assert.rejects(openOriginal(file, 1e9), {
    code: "model_invalid",
    message: /^model\.gguf: tensor "rope_freqs\.weight": a divisor is not above 0 and finite$/,
  });
});
