import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import type { PartialRecipe, RequestedRecipe } from "../../../src/contract/jobs/recipe.ts";
import { effectiveRecipe, findTarget } from "../../../src/contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { openOriginal } from "../../../src/engine/language/open-original.ts";
import { planCompression } from "../../../src/engine/plan-compression.ts";
import { writeModel } from "../../../src/engine/onnx/write-model.ts";
import { makeCheckpointFolder } from "../../support/checkpoint-folder.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import { compress, weightNamed } from "../quantize/compress.ts";
import { predict, sqnrDb } from "./predict.ts";

interface StoredTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [start: number, end: number];
}

const blockSize = 32;

const recorded = z.record(z.string(), z.object({ start: z.base64() }));

/** The values of a block as 4 bits with an offset have them: all codes are used, or one is not. */
function putOnGrid(block: Float32Array, steps: number): void {
  const least = Math.min(...block);
  const step = (Math.max(...block) - least) / steps;
  for (const [at, value] of block.entries()) {
    block[at] = least + Math.round((value - least) / step) * step;
  }
}

/** A checkpoint whose matrices were 4 bits with offsets, as GGUF's Q4_1 and Q4_K have them. */
async function makeCheckpoint(t: TestContext): Promise<string> {
  const folder = await makeCheckpointFolder(t, "llama3");
  const file = path.join(folder, "model.safetensors");
  const content = await readFile(file);
  const start = 8 + Number(content.readBigUInt64LE());
  const { __metadata__: _, ...header } = JSON.parse(content.toString("utf8", 8, start));
  const tensors = new Map<string, StoredTensor>(Object.entries(header));
  const floats: Buffer[] = [];
  let end = 0;
  for (const [name, { shape, data_offsets: offsets }] of tensors) {
    const bits = content.subarray(start + offsets[0], start + offsets[1]);
    const values = Float32Array.from({ length: bits.length / 2 }, (_, at) =>
      Buffer.from([0, 0, Number(bits[2 * at]), Number(bits[2 * at + 1])]).readFloatLE(),
    );
    for (let at = 0; shape.length === 2 && at < values.length; at += blockSize) {
      putOnGrid(values.subarray(at, at + blockSize), at % (2 * blockSize) === 0 ? 15 : 14);
    }
    floats.push(Buffer.from(values.buffer));
    tensors.set(name, { dtype: "F32", shape, data_offsets: [end, end + values.byteLength] });
    end += values.byteLength;
  }
  const text = Buffer.from(JSON.stringify(Object.fromEntries(tensors)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  await writeFile(file, Buffer.concat([length, text, ...floats]));
  return path.join(folder, "config.json");
}

const skip = await realModelMissing("smollm2");

test("a target for language models keeps offsets that a checkpoint has", { skip }, async () => {
  const target = findTarget(builtinTargets, "cpu-llm");
  const listKinds = async (requested: RequestedRecipe) => {
    const recipe = effectiveRecipe(target, requested);
    const planned = await planCompression(realModel("smollm2"), {
      kind: "quantize",
      target,
      recipe,
    });
    return new Set(planned.weights.flatMap(({ format }) => format?.storage.kind ?? []));
  };
  assert.deepEqual(await listKinds({}), new Set(["offset-blocks", "packed-blocks"]));
  assert.deepEqual(await listKinds({ preset: "int8" }), new Set(["packed-blocks"]));
});

test("a weight that was 4 bits with offsets only in part is rounded as others are", async (t) => {
  const files = recorded.parse(
    JSON.parse(await readFile(new URL("gguf.json", import.meta.url), "utf8")),
  );
  const folder = await mkdtemp(path.join(tmpdir(), "offsets-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "model.gguf");
  const start = Buffer.from(files["llama3 in 4 bits and 8"]?.start ?? "", "base64");
  await writeFile(file, Buffer.concat([start, Buffer.alloc(64 * 1024)]));
  const target = findTarget(builtinTargets, "cpu-llm");
  const recipe = effectiveRecipe(target, {});
  const { weights } = await planCompression(file, { kind: "quantize", target, recipe });
  const kinds = weights.flatMap(({ weight, format }) =>
    weight.name.includes("qkv_proj") ? [format?.storage.kind] : [],
  );
  assert.deepEqual(kinds, ["packed-blocks", "offset-blocks"]);
});

test("weights that were 4 bits with offsets stay what they were", async (t) => {
  const checkpoint = await makeCheckpoint(t);
  const folder = await mkdtemp(path.join(tmpdir(), "offsets-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeModel(await openOriginal(checkpoint, 1e9), { directory: folder, name: "original" });
  const original = await predict(path.join(folder, "original.onnx"));
  const measure = async (recipe: PartialRecipe) => {
    const directory = await mkdtemp(path.join(folder, "result-"));
    const report = await compress(checkpoint, directory, {
      scheme: "int4-weight",
      operators: "contrib",
      minElements: 0,
      overrides: [{ match: "*embed*", scheme: "int8-weight", granularity: "block" }],
      ...recipe,
    });
    return { report, sqnr: sqnrDb(original, await predict(path.join(directory, "model.onnx"))) };
  };
  const rounded = await measure({});
  const kept = await measure({ offsets: "all" });
  const floating = await measure({ offsets: "source" });
  assert(kept.sqnr > 28, `${kept.sqnr} dB`);
  assert(kept.sqnr > rounded.sqnr + 15, `${kept.sqnr} dB, without offsets ${rounded.sqnr} dB`);
  assert.equal(floating.sqnr, rounded.sqnr);
  const { form } = weightNamed(kept.report, "model.layers.0.mlp.down_proj.MatMul.weight");
  assert.equal(
    form,
    "int4 with a scale and an offset for each 32 inputs of an output, for MatMulNBits",
  );
});
