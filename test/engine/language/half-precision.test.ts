import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { InferenceSession } from "onnxruntime-node";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { assembleShares, compressModel } from "../../../src/engine/compress-model.ts";
import { compareResult } from "../../../src/engine/diff/compare-result.ts";
import { languageFiles } from "../../../src/engine/language/language-files.ts";
import { writeRunnableOriginal } from "../../../src/engine/language/runnable-original.ts";
import { optimizeShare } from "../../../src/engine/partial-plan.ts";
import { english, makeCheckpointFolder } from "../../support/checkpoint-folder.ts";
import { predict, sqnrDb } from "./predict.ts";
import { compress, contribTarget, makeFolder } from "../quantize/compress.ts";

const gpuTarget = { ...contribTarget, executionProvider: "cuda" } as const;

const recipes: readonly (readonly [string, PartialRecipe, leastDb: number])[] = [
  ["8 bits", { scheme: "int8-weight", granularity: "block", blockSize: 32 }, 25],
  ["8 bits for each channel", { scheme: "int8-weight" }, 28],
  ["half precision", { scheme: "fp16" }, 50],
];

for (const [name, recipe, leastDb] of recipes) {
  test(`a checkpoint in ${name} for a GPU computes in half precision`, async (t) => {
    await using folder = await makeFolder();
    const checkpoint = path.join(await makeCheckpointFolder(t, "llama"), "config.json");
    const { signal } = new AbortController();
    const original = await writeRunnableOriginal(checkpoint, "cpu", folder.path, signal);
    await compress(checkpoint, folder.path, { minElements: 0, ...recipe }, gpuTarget);
    const result = path.join(folder.path, "model.onnx");
    const session = await InferenceSession.create(result, { logSeverityLevel: 3 });
    const caches = session.inputMetadata.filter((input) => input.name.startsWith("past"));
    const types = caches.map((input) => input.isTensor && input.type);
    await session.release();
    assert.deepEqual(new Set(types), new Set(["float16"]));
    const accuracy = sqnrDb(await predict(original), await predict(result));
    assert(accuracy > leastDb, `${accuracy} dB`);
  });
}

test("weights in 4 bits for a GPU are what they are for a CPU, offsets too", async (t) => {
  const checkpoint = path.join(await makeCheckpointFolder(t, "llama3", english), "config.json");
  const kinds: PartialRecipe[] = [
    {},
    { offsets: "all" },
    { calibration: { generated: true, samples: 8 } },
  ];
  for (const kind of kinds) {
    await using folder = await makeFolder();
    await using other = await makeFolder();
    const recipe = {
      scheme: "int4-weight",
      operators: "contrib",
      minElements: 0,
      ...kind,
    } as const;
    const report = await compress(checkpoint, folder.path, recipe, gpuTarget);
    const onCpu = await compress(checkpoint, other.path, recipe);
    const formsOf = ({ weights }: typeof report) => weights.map(({ form }) => form);
    assert.deepEqual(formsOf(report), formsOf(onCpu));
    const [result, expected] = [folder, other].map((each) => path.join(each.path, "model.onnx"));
    const likeness = sqnrDb(await predict(expected ?? ""), await predict(result ?? ""));
    assert(likeness > 25, `${JSON.stringify(kind)}: ${likeness} dB`);
  }
});

test("shares of pods for a GPU are put together to what one process makes", async (t) => {
  const checkpoint = path.join(await makeCheckpointFolder(t, "llama"), "config.json");
  const { signal } = new AbortController();
  for (const scheme of ["int8-weight", "fp16"] as const) {
    await using folder = await makeFolder();
    const recipe = { scheme, minElements: 0 };
    const report = await compress(checkpoint, folder.path, recipe, gpuTarget);
    const work = {
      kind: "compress",
      recipe: resolveRecipe(recipe),
      target: gpuTarget,
      signal,
      onProgress: () => {},
      log: () => {},
    } as const;
    const shares = [0, 1, 2].map((index) => path.join(folder.path, `share-${index}`));
    for (const [index, outputPath] of shares.entries()) {
      await optimizeShare(checkpoint, { ...work, share: { index, count: 3 }, outputPath });
    }
    const outputDirectory = path.join(folder.path, "assembled");
    await mkdir(outputDirectory);
    await assembleShares(checkpoint, { ...work, outputDirectory }, shares);
    for (const { name } of report.files) {
      const [one, other] = [folder.path, outputDirectory].map((each) => path.join(each, name));
      assert.deepEqual(await readFile(other ?? ""), await readFile(one ?? ""), `${scheme} ${name}`);
    }
  }
});

test("a result for a GPU takes and gives what its original does", async (t) => {
  await using folder = await makeFolder();
  const checkpoint = path.join(await makeCheckpointFolder(t, "llama"), "config.json");
  const recipe = { scheme: "int8-weight", minElements: 0 } as const;
  const { weights } = await compress(checkpoint, folder.path, recipe, gpuTarget);
  const { changes } = await compareResult({
    originalPath: checkpoint,
    provider: "cuda",
    resultPath: path.join(folder.path, "model.onnx"),
    weights,
    maxModelBytes: 1e9,
    signal: new AbortController().signal,
  });
  assert.deepEqual(changes.values, []);
});

test("GenAI runs the folder of a GPU's target on the GPU", async (t) => {
  const checkpoint = path.join(await makeCheckpointFolder(t, "llama"), "config.json");
  const readProviders = async (provider: "cpu" | "cuda") => {
    const content = (await languageFiles(checkpoint, provider)).get("genai_config.json");
    return JSON.parse(Buffer.from(content ?? []).toString()).model.decoder.session_options
      .provider_options;
  };
  assert.deepEqual(await readProviders("cpu"), []);
  assert.deepEqual(await readProviders("cuda"), [
    { cuda: { enable_cuda_graph: "0", enable_skip_layer_norm_strict_mode: "1" } },
  ]);
});

test("a weight beyond the range of half precision is refused by its name", async (t) => {
  await using folder = await makeFolder();
  const checkpoint = await makeCheckpointFolder(t, "llama");
  const file = path.join(checkpoint, "model.safetensors");
  const bytes = await readFile(file);
  const headerBytes = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
  const [start] = header["model.norm.weight"].data_offsets;
  // 1e5, in bfloat16.
  bytes.writeUInt16LE(0x47c3, 8 + headerBytes + start);
  await writeFile(file, bytes);
  const refused = {
    code: "model_unsupported",
    message:
      'Tensor "model.layers.2.final_norm_layernorm.weight" has values beyond the range of half ' +
      "precision, in which GPUs run a language model",
  };
  const config = path.join(checkpoint, "config.json");
  const recipe = { scheme: "int8-weight", minElements: 0 } as const;
  await assert.rejects(compress(config, folder.path, recipe, gpuTarget), refused);
  const kept = {
    kind: "compress",
    recipe: resolveRecipe(recipe),
    target: gpuTarget,
    outputDirectory: folder.path,
    keptDirectory: path.join(folder.path, "kept"),
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  } as const;
  await assert.rejects(compressModel(config, kept), refused);
  await assert.rejects(compressModel(config, kept), refused, "by another attempt too");
});
