import assert from "node:assert/strict";
import {
  appendFile,
  copyFile,
  mkdir,
  readFile,
  readdir,
  rm,
  truncate,
  writeFile,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { assembleShares, compressModel } from "../../src/engine/compress-model.ts";
import type { CompressionReport } from "../../src/engine/compression-report.ts";
import { optimizeShare } from "../../src/engine/partial-plan.ts";
import { openModel } from "../../src/engine/onnx/open-model.ts";
import { TensorProto_DataLocation as DataLocation } from "../../src/engine/onnx/onnx_pb.js";
import { realModel, realModelMissing } from "../support/real-models.ts";
import type { RealModelName } from "../support/real-models.ts";
import { node, tensorInfo, floatInitializer, writeTinyModel } from "../support/tiny-model.ts";
import { contribTarget, makeFolder } from "./quantize/compress.ts";

function optionsFor(recipe: PartialRecipe) {
  const { signal } = new AbortController();
  const resolved = resolveRecipe({ fallback: "int8-weight" }, recipe);
  return {
    kind: "compress",
    recipe: resolved,
    target: contribTarget,
    signal,
    onProgress: () => {},
  } as const;
}

interface Compressed {
  readonly report: CompressionReport;
  readonly files: readonly Buffer[];
  readonly lines: readonly string[];
}

async function compressed(
  directory: string,
  run: (where: {
    outputDirectory: string;
    log: (line: string) => void;
  }) => Promise<CompressionReport>,
): Promise<Compressed> {
  await mkdir(directory);
  const lines: string[] = [];
  const report = await run({ outputDirectory: directory, log: (line) => lines.push(line) });
  assert.equal((await readdir(directory)).length, report.files.length);
  return {
    report,
    files: await Promise.all(report.files.map(({ name }) => readFile(join(directory, name)))),
    lines,
  };
}

async function compressWithoutShares(
  model: string,
  directory: string,
  recipe: PartialRecipe,
): Promise<Compressed> {
  return compressed(directory, (where) =>
    compressModel(model, { ...optionsFor(recipe), ...where }),
  );
}

/** Writes the shares of a model, each from a copy of its own, as separate machines do. */
async function writeShares(
  [model = "", ...externalData]: readonly string[],
  directory: string,
  recipe: PartialRecipe,
  count: number,
): Promise<string[]> {
  const paths: string[] = [];
  for (let index = 0; index < count; index++) {
    const machine = join(directory, `machine-${index}-of-${count}`);
    await mkdir(machine, { recursive: true });
    for (const file of [model, ...externalData])
      await copyFile(file, join(machine, basename(file)));
    const outputPath = join(machine, "share");
    await optimizeShare(join(machine, basename(model)), {
      ...optionsFor(recipe),
      share: { index, count },
      outputPath,
    });
    paths.push(outputPath);
  }
  return paths;
}

const schemes: Record<string, PartialRecipe> = {
  "int8-weight by channels": { scheme: "int8-weight" },
  "int8-weight by tensors": { scheme: "int8-weight", granularity: "tensor" },
  "int8-weight in contrib blocks": {
    scheme: "int8-weight",
    granularity: "block",
    operators: "contrib",
  },
  "int8-dynamic": { scheme: "int8-dynamic", reduceRange: true },
  "int4-weight in contrib blocks": { scheme: "int4-weight", operators: "contrib" },
  "int4-weight in standard blocks": { scheme: "int4-weight" },
  fp16: { scheme: "fp16" },
  "int8-weight in small weight files": {
    scheme: "int8-weight",
    sharding: { maxShardBytes: 262_144 },
  },
};
const counts = [1, 2, 3, 8];
/** Into how many shares each is divided; for each share all of the model is read, and one has 90 MB. */
const models: readonly (readonly [RealModelName, readonly number[]])[] = [
  ["ocr-orientation", counts],
  ["voice-v5", counts],
  ["ocr-recognition-v6", counts],
  ["minilm", [3]],
];

for (const [model, machines] of models) {
  const skip = await realModelMissing(model);
  for (const [name, recipe] of Object.entries(schemes)) {
    test(
      `${model} in ${name}: shares of ${machines.join(", ")} machines give the same bytes as one`,
      { skip },
      async () => {
        await using folder = await makeFolder();
        const whole = await compressWithoutShares(
          realModel(model),
          join(folder.path, "whole"),
          recipe,
        );
        const changed = whole.report.weights.filter(({ form }) => form !== null).length;
        for (const count of machines) {
          const paths = await writeShares([realModel(model)], folder.path, recipe, count);
          const { report, files, lines } = await compressed(
            join(folder.path, `from-${count}`),
            (where) => assembleShares(realModel(model), { ...optionsFor(recipe), ...where }, paths),
          );
          assert.deepEqual(report, whole.report);
          assert.ok(
            files.every((file, i) => whole.files[i]?.equals(file)),
            `${count} shares`,
          );
          assert.ok(
            lines.includes(`${changed} of ${changed} weights come from shares`),
            lines.join("\n"),
          );
        }
      },
    );
  }
}

test("shares of a model with external data give the same bytes as one machine", async () => {
  await using folder = await makeFolder();
  const original = join(folder.path, "original");
  const sharding = { maxShardBytes: 262_144 };
  await compressWithoutShares(realModel("ocr-orientation"), original, { scheme: "fp16", sharding });
  const model = join(original, "model.onnx");
  const recipe = { scheme: "int8-weight" } as const;
  const whole = await compressWithoutShares(model, join(folder.path, "whole"), recipe);
  const externalData = (await readdir(original)).filter((name) => name.endsWith(".bin"));
  const all = [model, ...externalData.map((name) => join(original, name))];
  const paths = await writeShares(all, folder.path, recipe, 2);
  const { report, files, lines } = await compressed(join(folder.path, "assembled"), (where) =>
    assembleShares(model, { ...optionsFor(recipe), ...where }, paths),
  );
  assert.deepEqual(report, whole.report);
  assert.deepEqual(files, whole.files);
  assert.match(lines.join("\n"), /^(\d+) of \1 weights come from shares$/m);
});

/** Four weights, of which the second holds what no format can. */
async function brokenModel(folder: string, broken: number): Promise<string> {
  const path = join(folder, "net.onnx");
  const weights = [0, 1, 2, 3].map((w) =>
    floatInitializer(`w${w}`, [64, 64], (i) => (w === 1 && i === 7 ? broken : Math.sin(i + w))),
  );
  const nodes = weights.map(({ name = "" }, w) =>
    node("MatMul", [w === 0 ? "x" : `y${w - 1}`, name], [`y${w}`]),
  );
  const [input, output] = [[tensorInfo("x", [1, 64])], [tensorInfo("y3", [1, 64])]];
  await writeTinyModel(path, { node: nodes, input, output, initializer: weights });
  return path;
}

for (const [what, broken, recipe] of [
  ["is not finite", Infinity, { scheme: "int8-weight" }],
  ["is beyond half precision", 1e6, { scheme: "fp16", fallback: "none" }],
] as const) {
  test(`a weight that ${what} in one share is left alone as where one machine does it all`, async () => {
    await using folder = await makeFolder();
    const model = await brokenModel(folder.path, broken);
    const whole = await compressWithoutShares(model, join(folder.path, "whole"), recipe);
    const paths = await writeShares([model], folder.path, recipe, 2);
    const { report, files, lines } = await compressed(join(folder.path, "assembled"), (where) =>
      assembleShares(model, { ...optionsFor(recipe), ...where }, paths),
    );
    assert.deepEqual(report, whole.report);
    assert.deepEqual(files, whole.files);
    assert.equal(report.weights[1]?.form, null);
    assert.ok(lines.includes("3 of 3 weights come from shares"), lines.join("\n"));
  });
}

test("what a calibration smooths is done again where shares are assembled", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "net.onnx");
  const weight = (name: string) => floatInitializer(name, [64, 64], (index) => Math.sin(index));
  await writeTinyModel(model, {
    node: [
      node("Mul", ["x", "scale"], ["n"]),
      node("MatMul", ["n", "smoothed"], ["y"]),
      node("MatMul", ["y", "other"], ["z"]),
    ],
    input: [tensorInfo("x", ["rows", 64])],
    output: [tensorInfo("z", ["rows", 64])],
    initializer: [
      floatInitializer("scale", [64], (channel) => (channel === 3 ? 40 : 1)),
      weight("smoothed"),
      weight("other"),
    ],
  });
  const calibration = { generated: true, samples: 8 };
  const recipe = { scheme: "int8-dynamic", calibration } as const;
  const whole = await compressWithoutShares(model, join(folder.path, "whole"), recipe);
  assert.match(whole.report.weights[1]?.form ?? "", /, smoothed$/);
  const paths = await writeShares([model], folder.path, recipe, 2);
  const { report, files, lines } = await compressed(join(folder.path, "assembled"), (where) =>
    assembleShares(model, { ...optionsFor(recipe), ...where }, paths),
  );
  assert.deepEqual(report, whole.report);
  assert.deepEqual(files, whole.files);
  assert.ok(lines.includes("1 of 2 weights come from shares"), lines.join("\n"));
});

test("assembleShares() does itself what no share has done", async () => {
  await using folder = await makeFolder();
  const model = await brokenModel(folder.path, 1);
  const recipe = { scheme: "int8-weight" } as const;
  const whole = await compressWithoutShares(model, join(folder.path, "whole"), recipe);
  const [first = ""] = await writeShares([model], folder.path, recipe, 2);
  const [other = ""] = await writeShares(
    [model],
    join(folder.path, "other"),
    { scheme: "int4-weight" },
    1,
  );
  const { report, files, lines } = await compressed(join(folder.path, "assembled"), (where) =>
    assembleShares(model, { ...optionsFor(recipe), ...where }, [first, other]),
  );
  assert.deepEqual(report, whole.report);
  assert.deepEqual(files, whole.files);
  assert.ok(lines.includes("2 of 4 weights come from shares"), lines.join("\n"));
});

test("assembleShares() refuses a file that is not a whole share, and leaves no file", async () => {
  await using folder = await makeFolder();
  const model = await brokenModel(folder.path, 1);
  const recipe = { scheme: "int8-weight" } as const;
  const [share = ""] = await writeShares([model], folder.path, recipe, 1);
  await truncate(share, 100);
  const outputDirectory = join(folder.path, "assembled");
  await mkdir(outputDirectory);
  for (const path of [share, model]) {
    const assembling = assembleShares(
      model,
      { ...optionsFor(recipe), outputDirectory, log: () => {} },
      [path],
    );
    await assert.rejects(assembling, /is not a/);
  }
  assert.deepEqual(await readdir(outputDirectory), []);
});

for (const [what, isExternal] of [
  ["the ONNX file", false],
  ["external data", true],
] as const) {
  test(`assembleShares() computes anew what a share computed from other content of ${what}`, async () => {
    await using folder = await makeFolder();
    const recipe = { scheme: "int8-weight", granularity: "tensor" } as const;
    const machine = join(folder.path, "machine");
    await mkdir(machine);
    const files = await writeVersion(machine, { broken: Infinity, shift: 1, isExternal });
    const paths = await writeShares(files, folder.path, recipe, 2);
    const [model = ""] = await writeVersion(machine, { broken: 1, shift: 0, isExternal });
    const whole = await compressWithoutShares(model, join(folder.path, "whole"), recipe);
    const { report, files: written } = await compressed(join(folder.path, "assembled"), (where) =>
      assembleShares(model, { ...optionsFor(recipe), ...where }, paths),
    );
    assert.notEqual(whole.report.weights[1]?.form, null);
    assert.deepEqual(report, whole.report);
    assert.deepEqual(written, whole.files);
  });
}

test("assembleShares() takes a share's work by the hash of the model's file", async () => {
  await using folder = await makeFolder();
  const model = await brokenModel(folder.path, 1);
  const recipe = { scheme: "int8-weight" } as const;
  const outputPath = join(folder.path, "share");
  const share = { index: 0, count: 1 };
  const shareOptions = { ...optionsFor(recipe), modelSha256: "a".repeat(64) };
  await optimizeShare(model, { ...shareOptions, share, outputPath });
  for (const [modelSha256, adopted] of [
    ["a".repeat(64), 4],
    ["b".repeat(64), 0],
  ] as const) {
    const { lines } = await compressed(join(folder.path, `from-${adopted}`), (where) =>
      assembleShares(model, { ...optionsFor(recipe), ...where, modelSha256 }, [outputPath]),
    );
    assert.ok(lines.includes(`${adopted} of 4 weights come from shares`), lines.join("\n"));
  }
});

interface ModelVersion {
  readonly broken: number;
  readonly shift: number;
  readonly isExternal: boolean;
}

/** Writes a version of a model of two weights, whose files have the same names and sizes. */
async function writeVersion(
  folder: string,
  { broken, shift, isExternal }: ModelVersion,
): Promise<string[]> {
  const [path, dataPath] = [join(folder, "net.onnx"), join(folder, "data.bin")];
  const numbers = (w: number) =>
    Float32Array.from({ length: 4096 }, (_, i) =>
      w === 1 && i === 7 ? broken : Math.sin(i + w + shift),
    );
  const weights = [0, 1].map((w) => {
    const content = numbers(w);
    const inline = floatInitializer(`w${w}`, [64, 64], (i) => content[i] ?? 0);
    if (!isExternal) return inline;
    const externalData = [
      { key: "location", value: "data.bin" },
      { key: "offset", value: String(w * 16_384) },
    ];
    const { name = "", dims = [], dataType = 0 } = inline;
    return { name, dims, dataType, dataLocation: DataLocation.EXTERNAL, externalData };
  });
  const nodes = [node("MatMul", ["x", "w0"], ["h"]), node("MatMul", ["h", "w1"], ["y"])];
  const [input, output] = [[tensorInfo("x", [1, 64])], [tensorInfo("y", [1, 64])]];
  await writeTinyModel(path, { node: nodes, input, output, initializer: weights });
  if (!isExternal) return [path];
  await writeFile(dataPath, Buffer.concat([0, 1].map((w) => Buffer.from(numbers(w).buffer))));
  return [path, dataPath];
}

function listFinished({ lines }: Compressed): number[] {
  const found = lines.flatMap((line) => /^(\d+) of (\d+) weights were finished/.exec(line) ?? []);
  return found.slice(1).map(Number);
}

test("work that was interrupted goes on after what it had finished, with the same bytes", async () => {
  await using folder = await makeFolder();
  const model = realModel("ocr-recognition-v6");
  const recipe: PartialRecipe = { scheme: "int8-weight", dequantize: "run" };
  const expected = await compressWithoutShares(model, join(folder.path, "whole"), recipe);
  const keptDirectory = join(folder.path, "kept");
  const stop = new AbortController();
  const options = { ...optionsFor(recipe), keptDirectory };
  const outputDirectory = join(folder.path, "interrupted");
  await mkdir(outputDirectory);
  const interrupted = compressModel(model, {
    ...options,
    outputDirectory,
    log: () => {},
    signal: stop.signal,
    onProgress: (fraction) => fraction > 0.8 && stop.abort(new Error("interrupted")),
  });
  await assert.rejects(interrupted, /interrupted/);
  const [work = ""] = await readdir(keptDirectory);
  // The process was killed while it wrote.
  await appendFile(join(keptDirectory, work, "finished-tasks"), '{"index":');
  // Another one was killed while it timed a candidate, and in a later pass.
  for (const left of ["candidate-left", "0".repeat(64)]) await mkdir(join(keptDirectory, left));
  const goOn = (name: string) =>
    compressed(join(folder.path, name), (where) => compressModel(model, { ...options, ...where }));
  const resumed = await goOn("resumed");
  const [some = 0, all = 0] = listFinished(resumed);
  assert.ok(some > 0 && some < all, `${some} of ${all}`);
  assert.deepEqual(await readdir(keptDirectory), [work]);
  const again = await goOn("again");
  assert.deepEqual(listFinished(again), [all, all]);
  // The process was killed while it removed what was not needed any longer.
  await rm(join(keptDirectory, work, "model.onnx"));
  const anew = await goOn("anew");
  assert.deepEqual(listFinished(anew), []);
  for (const { report, files } of [resumed, again, anew]) {
    assert.deepEqual(files, expected.files);
    assert.deepEqual(report.weights, expected.report.weights);
  }
});

test("the finished work of a language model in several files is kept", async () => {
  await using folder = await makeFolder();
  const checkpoint = new URL("language/checkpoints/llama3/config.json", import.meta.url);
  const recipe: PartialRecipe = { scheme: "int8-weight", minElements: 0 };
  const options = { ...optionsFor(recipe), keptDirectory: join(folder.path, "kept") };
  const run = (name: string) =>
    compressed(join(folder.path, name), (where) =>
      compressModel(fileURLToPath(checkpoint), { ...options, ...where }),
    );
  const [first, again] = [await run("first"), await run("again")];
  assert.deepEqual(listFinished(first), []);
  const [finished, all] = listFinished(again);
  assert.ok(Number(finished) > 0 && finished === all, again.lines.join("\n"));
  assert.equal(again.files.length, 3);
  assert.deepEqual(again.files, first.files);
  // A model with hard links would be refused.
  await openModel(join(folder.path, "again", "model.onnx"), 1e9);
});
