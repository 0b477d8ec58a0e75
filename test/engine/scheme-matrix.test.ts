import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { evaluateModels } from "../../src/engine/evaluate-models.ts";
import { pythonMissing, runPython } from "../support/python.ts";
import { minilmData, realModel, realModelMissing } from "../support/real-models.ts";
import type { RealModelName } from "../support/real-models.ts";
import { compress, makeFolder } from "./quantize/compress.ts";

const recipes: Record<string, PartialRecipe> = {
  "int8-weight": { scheme: "int8-weight" },
  "int8-weight in contrib blocks": {
    scheme: "int8-weight",
    granularity: "block",
    operators: "contrib",
  },
  "int8-dynamic": { scheme: "int8-dynamic", reduceRange: true },
  "int4-weight in contrib blocks": { scheme: "int4-weight", operators: "contrib" },
  "int4-weight in standard blocks": { scheme: "int4-weight" },
  fp16: { scheme: "fp16" },
};

interface Family {
  readonly what: string;
  readonly model: RealModelName;
  /** Schemes for matrices, where the model has none: they need a fallback. */
  readonly refused: readonly string[];
  /** Least SQNR of outputs by each recipe, dB. */
  readonly least: readonly number[];
}

const forMatrices = [
  "int8-dynamic",
  "int4-weight in contrib blocks",
  "int4-weight in standard blocks",
];
const families: readonly Family[] = [
  {
    what: "a transformer encoder",
    model: "minilm",
    refused: [],
    least: [27, 31.2, 17.5, 10.8, 9, 60],
  },
  {
    what: "an image classifier",
    model: "page-orientation",
    refused: [],
    least: [22, 22, 68, 52, 52, 45],
  },
  {
    what: "a segmentation of text",
    model: "ocr-detection",
    refused: forMatrices,
    least: [29, 29, 29, 29, 29, 50.5],
  },
  {
    what: "a text recognizer",
    model: "ocr-recognition-v6",
    refused: [],
    least: [20.5, 20, 28, 11, 11, 44.5],
  },
  {
    what: "a recurrent network with If",
    model: "voice-v5",
    refused: forMatrices,
    least: [32.5, 32.5, 32.5, 32.5, 32.5, 64.5],
  },
];

const samples = 2;

/** Noise, and glyph-like patterns for the detector, which finds nothing in noise. `minilm` has English text of its own. */
const makeData = `
import os, sys
import numpy as np
random = np.random.default_rng(7)

def pages(height, width):
    ink = np.zeros((${samples}, height, width))
    for y in range(8, height - 20, 32):
        for x in range(8, width - 14, 12):
            cells = random.random((${samples}, 4, 3)) < 0.6
            ink[:, y:y + 16, x:x + 9] = np.kron(cells, np.ones((1, 4, 3)))
    return np.repeat((1 - 2 * ink)[:, None, None], 3, 2).astype(np.float32)

def save(name, **arrays): np.savez(os.path.join(sys.argv[1], name + ".npz"), **arrays)
def noise(*shape): return (random.standard_normal((${samples}, *shape)) * 0.5).astype(np.float32)
save("page-orientation", x=noise(1, 3, 224, 224))
save("ocr-detection", x=pages(64, 96))
save("ocr-recognition-v6", x=noise(1, 3, 48, 96))
save("voice-v5", input=noise(1, 576), state=noise(2, 1, 128), sr=np.full(${samples}, 16000, np.int64))
`;

/** Prints the SQNR of the worst output of every result, over all samples. */
const measure = `
import json, sys
import numpy as np, onnx, onnxruntime as ort
data, original, *results = sys.argv[1:]
arrays = dict(np.load(data))

def run(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    def sample(value, index):
        array = arrays[value.name]
        return array[index:index + 1] if array.ndim == len(value.shape) and array.ndim > 0 else array[index]
    feeds = [{value.name: np.asarray(sample(value, index)) for value in session.get_inputs()} for index in range(${samples})]
    return [np.concatenate([np.ravel(part).astype(np.float64) for part in parts]) for parts in zip(*(session.run(None, feed) for feed in feeds))]

before = run(original)
levels = []
for path in results:
    onnx.checker.check_model(path, full_check=True)
    after = run(path)
    pairs = [((x ** 2).sum(), ((y - x) ** 2).sum()) for x, y in zip(before, after)]
    levels.append(min(150.0 if noise == 0 else float(10 * np.log10(signal / noise)) for signal, noise in pairs))
print(json.dumps(levels))
`;

let folder: Awaited<ReturnType<typeof makeFolder>>;
before(async () => {
  folder = await makeFolder();
  if (pythonMissing === false) await runPython(makeData, [folder.path]);
});
after(() => folder[Symbol.asyncDispose]());

async function reportedSqnr(
  model: RealModelName,
  resultPath: string,
  dataPath: string,
): Promise<number> {
  const sqnrDb: number[] = [];
  await evaluateModels({
    originalPath: realModel(model),
    resultPath,
    dataPath,
    evaluation: { samples, latencyBudgetSeconds: 0, minCosine: -1 },
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory: folder.path,
    signal: new AbortController().signal,
    onProgress: () => {},
    onMeasured: ({ accuracy }) => accuracy && sqnrDb.push(accuracy.sqnrDb),
    log: () => {},
  });
  return sqnrDb[0] ?? NaN;
}

for (const { what, model, refused, least } of families) {
  const skip = pythonMissing || (await realModelMissing(model));
  test(
    `every scheme on ${what} (${model}) is valid and gives the reported error in Python too`,
    { skip },
    async () => {
      const dataPath = model === "minilm" ? minilmData : join(folder.path, `${model}.npz`);
      const paths: string[] = [];
      const reported: number[] = [];
      for (const [name, recipe] of Object.entries(recipes)) {
        const directory = join(folder.path, `${model} ${name}`);
        await mkdir(directory);
        if (refused.includes(name)) {
          await assert.rejects(compress(realModel(model), directory, recipe), {
            code: "nothing_to_quantize",
          });
        }
        const fallback = refused.includes(name) ? "int8-weight" : "none";
        await compress(realModel(model), directory, { ...recipe, fallback });
        const path = join(directory, "model.onnx");
        paths.push(path);
        reported.push(await reportedSqnr(model, path, dataPath));
      }
      const measured: number[] = JSON.parse(
        await runPython(measure, [dataPath, realModel(model), ...paths]),
      );
      for (const [index, name] of Object.keys(recipes).entries()) {
        const [inNode = NaN, inPython = NaN] = [reported[index], measured[index]];
        assert.ok(
          Math.abs(inNode - inPython) <= 0.5,
          `${name}: ${inNode} dB reported, ${inPython} dB in Python`,
        );
        assert.ok(inPython >= Number(least[index]), `${name}: ${inPython} dB`);
      }
    },
  );
}
