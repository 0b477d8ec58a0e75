import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ServiceError } from "../../../src/contract/errors.ts";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { writeRunnableOriginal } from "../../../src/engine/language/runnable-original.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { writeArraysNpz, writeFloatsNpz } from "../../support/npz.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { english, makeCheckpointFolder } from "../../support/checkpoint-folder.ts";
import { minilmData, realModel, realModelMissing } from "../../support/real-models.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { makeFolder } from "../quantize/compress.ts";
import { compress, measureSqnrDb } from "./compress-calibrated.ts";

const [inputs, outputs] = [64, 32];
const int4 = { scheme: "int4-weight", operators: "contrib", symmetric: false } as const;
const caller = { data: "file:///samples.npz", samples: 64 } as const;

/** A product of inputs that depend on one another, and samples of them. */
async function writeProduct(folder: string, samples: number): Promise<string> {
  const path = join(folder, "product.onnx");
  const weight = createNormal(createRandom(1));
  await writeTinyModel(path, {
    node: [node("MatMul", ["x", "w"], ["y"])],
    input: [tensorInfo("x", ["rows", inputs])],
    output: [tensorInfo("y", ["rows", outputs])],
    initializer: [floatInitializer("w", [inputs, outputs], weight)],
  });
  await writeFloatsNpz(folder, "x", { shape: [samples, 8, inputs], values: drawRows(samples * 8) });
  return path;
}

function drawRows(rows: number): number[] {
  const normal = createNormal(createRandom(2));
  const factors = Array.from({ length: inputs * 4 }, normal);
  return Array.from({ length: rows }, () => {
    const causes = Array.from({ length: 4 }, normal);
    return Array.from({ length: inputs }, (_, input) =>
      causes.reduce(
        (sum, cause, at) => sum + cause * Number(factors[input * 4 + at]),
        normal() / 4,
      ),
    );
  }).flat();
}

async function refusal(work: Promise<unknown>): Promise<ServiceError> {
  const error = await work.then(
    () => assert.fail("The calibration was accepted"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ServiceError, String(error));
  return error;
}

// Products of 8-bit blocks round activations to 8 bits too, which no fitting makes up for.
for (const [scheme, gainDb] of [
  ["int4-weight", 3],
  ["int8-weight", 1.5],
] as const) {
  for (const operators of ["contrib", "standard"] as const) {
    test(`Rounding fitted to dependent inputs changes ${scheme} products less, ${operators}`, async () => {
      await using folder = await makeFolder();
      const model = await writeProduct(folder.path, 48);
      const data = join(folder.path, "x.npz");
      const recipe = { ...int4, scheme, operators, granularity: "block" } as const;
      await compress(model, folder.path, { recipe });
      const nearest = await measureSqnrDb(model, folder.path, data);
      const calibration = { data: "file:///x.npz", samples: 40 };
      const evaluation = { data: "file:///x.npz", samples: 8 };
      const fitted = { ...recipe, calibration, evaluation };
      const report = await compress(model, folder.path, { recipe: fitted, data });
      const expected = { data: "caller", samples: 40, evaluationSamples: 8, fittedWeights: 1 };
      assert.deepEqual(report.calibration, expected);
      assert.match(report.weights[0]?.form ?? "", /fitted to the inputs$/);
      const sqnrDb = await measureSqnrDb(model, folder.path, data);
      assert.ok(sqnrDb > nearest + gainDb, `${sqnrDb} dB fitted, ${nearest} dB to nearest`);
    });
  }
}

test("Rounding is fitted to inputs in half precision too", async () => {
  await using folder = await makeFolder();
  const path = join(folder.path, "half.onnx");
  const to = (type: number) => [integerAttribute("to", type)];
  await writeTinyModel(path, {
    node: [
      node("Cast", ["x"], ["xHalf"], to(TensorProto_DataType.FLOAT16)),
      node("Cast", ["w"], ["wHalf"], to(TensorProto_DataType.FLOAT16)),
      node("MatMul", ["xHalf", "wHalf"], ["yHalf"]),
      node("Cast", ["yHalf"], ["y"], to(TensorProto_DataType.FLOAT)),
    ],
    input: [tensorInfo("x", ["rows", inputs])],
    output: [tensorInfo("y", ["rows", outputs])],
    initializer: [floatInitializer("w", [inputs, outputs], Math.sin)],
  });
  const calibration = { generated: true, samples: 2 };
  const report = await compress(path, folder.path, { recipe: { ...int4, calibration } });
  assert.match(report.weights[0]?.form ?? "", /fitted to the inputs$/);
});

/** Two products one after the other. */
async function writeChain(folder: string): Promise<string> {
  const path = join(folder, "chain.onnx");
  const weight = createNormal(createRandom(3));
  await writeTinyModel(path, {
    node: [
      node("MatMul", ["x", "a"], ["wide"]),
      node("Relu", ["wide"], ["hidden"]),
      node("Gemm", ["hidden", "b"], ["y"]),
    ],
    input: [tensorInfo("x", ["rows", inputs])],
    output: [tensorInfo("y", ["rows", outputs])],
    initializer: [
      floatInitializer("a", [inputs, 2 * inputs], weight),
      floatInitializer("b", [2 * inputs, outputs], weight),
    ],
  });
  return path;
}

test("A product makes up for what rounding has changed in its inputs", async () => {
  await using folder = await makeFolder();
  const model = await writeChain(folder.path);
  const values = Array.from({ length: 72 * 8 * inputs }, createNormal(createRandom(4)));
  const data = await writeFloatsNpz(folder.path, "x", { shape: [72, 8, inputs], values });
  const calibration = { data: "file:///x.npz", samples: 64 };
  const evaluation = { data: "file:///x.npz", samples: 8 };
  const recipe = { ...int4, granularity: "block", calibration, evaluation } as const;
  const measure = async (changes: PartialRecipe) => {
    await compress(model, folder.path, { recipe: { ...recipe, ...changes }, data });
    return measureSqnrDb(model, folder.path, data);
  };
  const independent = await measure({ overrides: [] });
  const following = await measure({});
  assert.ok(following > independent + 0.5, `${following} dB, and ${independent} dB each by itself`);
});

test("Padding is not calibrated on", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "masked.onnx");
  await writeTinyModel(model, {
    node: [node("MatMul", ["x", "w"], ["all"]), node("Mul", ["all", "attention_mask"], ["y"])],
    input: [tensorInfo("x", [8, inputs]), tensorInfo("attention_mask", [8, 1])],
    output: [tensorInfo("y", [8, outputs])],
    initializer: [floatInitializer("w", [inputs, outputs], createNormal(createRandom(1)))],
  });
  const values = drawRows(16 * 8);
  const isUsed = (row: number) => row % 8 > 0 && row % 8 < 6;
  const results = await Promise.all(
    [1, 100].map(async (padding) => {
      const data = join(folder.path, `${padding}.npz`);
      const padded = values.map((value, index) =>
        isUsed(Math.floor(index / inputs)) ? value : value * padding,
      );
      const mask = Array.from({ length: 16 * 8 }, (_, row) => Number(isUsed(row)));
      await writeArraysNpz(data, {
        x: { shape: [16, 8, inputs], values: padded },
        attention_mask: { shape: [16, 8, 1], values: mask },
      });
      const place = join(folder.path, String(padding));
      const recipe = { ...int4, granularity: "block", calibration: caller } as const;
      await compress(model, place, { recipe, data });
      return readFile(join(place, "result", "model.onnx"));
    }),
  );
  assert.deepEqual(results[0], results[1]);
});

function integerInitializer(name: string, value: number) {
  const rawData = new Uint8Array(BigInt64Array.of(BigInt(value)).buffer);
  return { name, dims: [1n], dataType: TensorProto_DataType.INT64, rawData };
}

for (const atOnce of ["several sentences", "one sentence"] as const) {
  test(`Padding of tokens is not calibrated on by a model that takes ${atOnce} at a time`, async () => {
    await using folder = await makeFolder();
    const model = join(folder.path, "embedding.onnx");
    const [width, tokens, samples] = [16, 40, 9];
    const normal = createNormal(createRandom(1));
    await writeTinyModel(model, {
      node: [
        node("Cast", ["ids"], ["rows"], [integerAttribute("to", 7)]),
        node("Gather", ["table", "rows"], ["gathered"]),
        atOnce === "one sentence"
          ? node("Squeeze", ["gathered", "axis"], ["x"])
          : node("Identity", ["gathered"], ["x"]),
        node("MatMul", ["x", "w"], ["all"]),
        node("Unsqueeze", ["attention_mask", "last"], ["used"]),
        node("Mul", ["all", "used"], ["y"]),
      ],
      input: [
        tensorInfo("ids", ["batch", "sequence"]),
        tensorInfo("attention_mask", ["batch", "sequence"]),
      ],
      output: [tensorInfo("y", ["batch", "sequence", outputs])],
      initializer: [
        floatInitializer("table", [tokens, inputs], normal),
        floatInitializer("w", [inputs, outputs], normal),
        integerInitializer("axis", 0),
        integerInitializer("last", 2),
      ],
    });
    const random = createRandom(2);
    const ids = Array.from({ length: samples * width }, () => 1 + Math.floor(random() * 38));
    const isUsed = (index: number) => index % width < 4 + Math.floor(index / width);
    const results = await Promise.all(
      [0, 39].map(async (padding) => {
        const data = join(folder.path, `${padding}.npz`);
        const shape = [samples, 1, width];
        await writeArraysNpz(data, {
          ids: { shape, values: ids.map((id, index) => (isUsed(index) ? id : padding)) },
          attention_mask: { shape, values: ids.map((_, index) => Number(isUsed(index))) },
        });
        const place = join(folder.path, String(padding));
        const exclude = ["table"];
        const recipe = { ...int4, granularity: "block", calibration: caller, exclude } as const;
        const { calibration } = await compress(model, place, { recipe, data });
        assert.deepEqual([calibration?.samples, calibration?.fittedWeights], [samples, 1]);
        return readFile(join(place, "result", "model.onnx"));
      }),
    );
    assert.deepEqual(results[0], results[1]);
  });
}

test("the rounding of a checkpoint is fitted to text, the caller's or the built-in one", async (t) => {
  const folder = await makeCheckpointFolder(t, "llama3", english);
  const checkpoint = join(folder, "config.json");
  const random = createRandom(5);
  const draw = (name: string, lines: number) => {
    const ids = () => Array.from({ length: 64 }, () => Math.floor(random() * 40));
    const text = Array.from({ length: lines }, () => JSON.stringify(ids())).join("\n");
    return writeFile(join(folder, name), text);
  };
  await draw("calibration.jsonl", 32);
  await draw("evaluation.jsonl", 8);
  const data = join(folder, "calibration.jsonl");
  const { signal } = new AbortController();
  const original = await writeRunnableOriginal(checkpoint, "cpu", folder, signal);
  const measure = async () => measureSqnrDb(original, folder, join(folder, "evaluation.jsonl"));
  const recipe = { ...int4, exclude: ["*embed*"], minElements: 0 };
  await compress(checkpoint, folder, { recipe });
  const rounded = await measure();
  const fitted = await compress(checkpoint, folder, {
    recipe: { ...recipe, calibration: caller },
    data,
  });
  const { data: kind, samples, fittedWeights } = fitted.calibration ?? {};
  assert.deepEqual([kind, samples, fittedWeights], ["caller", 32, 10]);
  const gain = (await measure()) - rounded;
  assert(gain > 1, `${gain} dB more than ${rounded}`);
  const builtin = { ...recipe, calibration: { generated: true } };
  const { calibration } = await compress(checkpoint, folder, { recipe: builtin });
  assert.equal(calibration?.data, "builtin");
});

test("A file that serves both is divided where it has too few samples", async () => {
  await using folder = await makeFolder();
  const model = await writeProduct(folder.path, 5);
  const recipe = { ...int4, calibration: caller, evaluation: { data: caller.data, samples: 8 } };
  const { calibration } = await compress(model, folder.path, {
    recipe,
    data: join(folder.path, "x.npz"),
  });
  assert.deepEqual(calibration, {
    data: "caller",
    samples: 2,
    evaluationSamples: 3,
    fittedWeights: 1,
  });
});

test("A single sample cannot serve both, and alone it is warned of", async () => {
  await using folder = await makeFolder();
  const model = await writeProduct(folder.path, 1);
  const data = join(folder.path, "x.npz");
  const shared = { ...int4, calibration: caller, evaluation: { data: caller.data } };
  const error = await refusal(compress(model, folder.path, { recipe: shared, data }));
  assert.equal(error.code, "calibration_data_invalid");
  assert.match(error.message, /has one sample, which cannot serve both/);
  const own = { ...int4, calibration: caller };
  const { warnings } = await compress(model, folder.path, { recipe: own, data });
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["calibrated_on_one_sample"],
  );
  assert.match(warnings[0]?.message ?? "", /of 1 weight fit a single sample$/);
});

test("Generated samples are used only where they are asked for, and marked", async () => {
  await using folder = await makeFolder();
  const model = await writeProduct(folder.path, 1);
  const nothing = await refusal(
    compress(model, folder.path, { recipe: { ...int4, calibration: {} } }),
  );
  assert.equal(nothing.code, "recipe_unsupported");
  assert.match(nothing.message, /no samples: give `data` or set `generated`/);
  const recipe = { ...int4, calibration: { generated: true, samples: 4 } };
  const { calibration, warnings } = await compress(model, folder.path, { recipe });
  assert.equal(calibration?.data, "generated");
  assert.equal(calibration.samples, 4);
  assert.ok(warnings.some(({ code }) => code === "calibrated_on_generated"));
});

test("A calibration without use is said to be so", async () => {
  await using folder = await makeFolder();
  const model = await writeProduct(folder.path, 4);
  const recipe = { scheme: "int8-weight", calibration: caller } as const;
  const { calibration, warnings } = await compress(model, folder.path, {
    recipe,
    data: join(folder.path, "x.npz"),
  });
  assert.equal(calibration, undefined);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["calibration_unused"],
  );
});

const badData: readonly {
  readonly what: string;
  readonly name?: string;
  readonly shape: readonly number[];
  readonly values: readonly number[];
  readonly message: RegExp;
}[] = [
  {
    what: "a name that is no input",
    name: "z",
    shape: [1, 8, inputs],
    values: drawRows(8),
    message: /Array "z" is not an input of the model, whose inputs are "x"/,
  },
  {
    what: "another shape",
    shape: [1, 8, inputs - 1],
    values: drawRows(8).slice(0, 8 * (inputs - 1)),
    message: /has shape \[1,8,63\] .* the model takes float32 of shape \[samples,.*64\]/,
  },
  {
    what: "no samples",
    shape: [0, 8, inputs],
    values: [],
    message: /Array "x" has shape \[0,8,64\]/,
  },
  {
    what: "NaN",
    shape: [2, 8, inputs],
    values: drawRows(16).with(8 * inputs, NaN),
    message: /Input "x" of sample 2 of the calibration data has NaN/,
  },
];

for (const { what, name = "x", shape, values, message } of badData) {
  test(`Calibration data with ${what} is refused`, async () => {
    await using folder = await makeFolder();
    const model = await writeProduct(folder.path, 1);
    const data = await writeFloatsNpz(folder.path, name, { shape, values });
    const recipe = { ...int4, calibration: caller };
    const error = await refusal(compress(model, folder.path, { recipe, data }));
    assert.equal(error.code, "calibration_data_invalid");
    assert.match(error.message, message);
  });
}

test(
  "A transformer in int4 gains more than 2 dB on sentences that it is not fitted to",
  { skip: await realModelMissing("minilm") },
  async () => {
    await using folder = await makeFolder();
    const model = realModel("minilm");
    const recipe = { ...int4, exclude: ["*embedding*"] } satisfies PartialRecipe;
    await compress(model, folder.path, { recipe });
    const nearest = await measureSqnrDb(model, folder.path, minilmData);
    const calibrated = {
      ...recipe,
      calibration: caller,
      evaluation: { data: caller.data, samples: 8 },
    };
    const report = await compress(model, folder.path, { recipe: calibrated, data: minilmData });
    assert.equal(report.calibration?.samples, 24);
    assert.equal(report.calibration.fittedWeights, 36);
    const sqnrDb = await measureSqnrDb(model, folder.path, minilmData);
    assert.ok(sqnrDb > nearest + 2, `${sqnrDb} dB fitted, ${nearest} dB to nearest`);
  },
);
