import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { unzipSync, zipSync } from "fflate";
import { evaluateModels } from "../../src/engine/evaluate-models.ts";
import { TensorProto_DataType } from "../../src/engine/onnx/onnx_pb.js";
import { writeFloatsNpz } from "../support/npz.ts";
import { realModel } from "../support/real-models.ts";
import {
  integerAttribute,
  node,
  tensorInfo,
  floatInitializer,
  writeTinyModel,
} from "../support/tiny-model.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "evaluate-models-"))));
after(() => rm(folder, { recursive: true }));

const evaluation = { samples: 2, latencyBudgetSeconds: 0, minCosine: 0.9 };

type EvaluateOptions = Parameters<typeof evaluateModels>[0];
type Figures = Parameters<EvaluateOptions["onMeasured"]>[0];

/** Gives `figures` everything that is measured, in the order in which it is. */
async function measure(
  originalPath: string,
  resultPath: string,
  { figures, ...options }: Partial<EvaluateOptions> & { figures: Figures[] },
): Promise<void> {
  await evaluateModels({
    originalPath,
    resultPath,
    evaluation,
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory: folder,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onMeasured: (measured) => figures.push(measured),
    log: () => undefined,
    ...options,
  });
}

async function evaluate(
  originalPath: string,
  resultPath: string,
  options: Partial<EvaluateOptions> = {},
) {
  const figures: Figures[] = [];
  await measure(originalPath, resultPath, { ...options, figures });
  const { accuracy, latency, memory, device } = mergeFigures(figures);
  assert(accuracy && memory && device);
  const warnings = figures.flatMap((measured) => measured.warnings ?? []);
  return { accuracy, latency, memory, device, warnings };
}

function mergeFigures(figures: readonly Figures[]): Figures {
  return figures.reduce((merged, measured) => ({ ...merged, ...measured }), {});
}

/** y = x · w with a weight of `content` in both places. */
async function productModel(name: string, content: number): Promise<string> {
  const path = join(folder, `${name}.onnx`);
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["batch", 2])],
    output: [tensorInfo("y", ["batch", 2])],
    initializer: [floatInitializer("w", [2, 2], () => content)],
    node: [node("MatMul", ["x", "w"], ["y"])],
  });
  return path;
}

async function floatsNpz(name: string, shape: number[], values: number[]): Promise<string> {
  return writeFloatsNpz(folder, name, { shape, values });
}

/** An archive of the arrays of several. */
async function joinNpz(name: string, paths: readonly string[]): Promise<string> {
  const parts = await Promise.all(paths.map(async (path) => unzipSync(await readFile(path))));
  const path = join(folder, `${name}.npz`);
  await writeFile(path, zipSync(Object.assign({}, ...parts)));
  return path;
}

for (const name of ["ocr-orientation", "voice-legacy", "voice-v5"] as const) {
  test(`evaluateModels() finds ${name} equal to itself on generated data`, async () => {
    const { accuracy, latency, memory, device, warnings } = await evaluate(
      realModel(name),
      realModel(name),
      { evaluation: { ...evaluation, latencyBudgetSeconds: 0.1 } },
    );
    assert.deepEqual(
      accuracy.outputs.map(({ sqnrDb, cosine, maxAbsoluteError }) => [
        sqnrDb,
        cosine,
        maxAbsoluteError,
      ]),
      accuracy.outputs.map(() => [150, 1, 0]),
    );
    assert.deepEqual(
      [accuracy.data, accuracy.samples, accuracy.sqnrDb, accuracy.cosine],
      ["generated", 2, 150, 1],
    );
    assert(latency?.ratioLow !== undefined && latency.ratioHigh !== undefined);
    const { ratio, ratioLow, ratioHigh, sessions = 0, result } = latency;
    assert.ok(sessions >= 2 && result.p50Ms > 0 && result.runs >= 2 * sessions);
    assert.ok(ratioLow < ratio && ratio < ratioHigh, `${ratioLow} < ${ratio} < ${ratioHigh}`);
    assert.ok(device.cores !== undefined && device.cores > 0);
    for (const peakBytes of [memory.originalPeakBytes, memory.resultPeakBytes]) {
      assert.ok(
        peakBytes !== undefined && peakBytes > 2 ** 20 && peakBytes < 2 ** 27,
        `${peakBytes}`,
      );
    }
    assert.deepEqual([device.executionProvider, device.threads], ["cpu", 1]);
    assert.match(device.runtime, /^onnxruntime-node \d+\.\d+\.\d+$/);
    assert.deepEqual(
      warnings.filter(({ code }) => code !== "latency_noisy"),
      [],
    );
  });
}

test("evaluateModels() times nothing where the budget is 0, and says so", async () => {
  const path = await productModel("one", 1);
  const { latency, warnings } = await evaluate(path, path);
  assert.equal(latency, undefined);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["latency_not_timed"],
  );
});

test("models that do not fit into memory beside each other are compared, and not timed", async () => {
  const original = await productModel("fitting", 1);
  const result = await productModel("growing", 1);
  // Stands for the GPU's allocator, which has no more memory once the other model is loaded.
  const tooLarge = join(folder, "too-large.onnx");
  await writeTinyModel(tooLarge, {
    input: [tensorInfo("x", ["batch", 2])],
    output: [tensorInfo("y", ["batch", 2])],
    initializer: [
      {
        name: "sizes",
        dims: [2n],
        dataType: TensorProto_DataType.INT64,
        rawData: new Uint8Array(BigInt64Array.of(2n ** 24n, 2n ** 24n).buffer),
      },
    ],
    node: [
      node("ReduceMax", ["x"], ["largest"], [integerAttribute("keepdims", 0)]),
      node("Expand", ["largest", "sizes"], ["huge"]),
      node("ReduceMax", ["huge"], ["least"], [integerAttribute("keepdims", 0)]),
      node("Add", ["x", "least"], ["y"]),
    ],
  });
  const figures: Figures[] = [];
  await measure(original, result, {
    figures,
    evaluation: { ...evaluation, latencyBudgetSeconds: 1 },
    onMeasured: (measured) => {
      figures.push(measured);
      if (measured.accuracy !== undefined) copyFileSync(tooLarge, result);
    },
  });
  const { accuracy, latency } = mergeFigures(figures);
  assert.deepEqual([accuracy?.sqnrDb, latency], [150, undefined]);
  const [warning, ...others] = figures.flatMap(({ warnings = [] }) => warnings);
  assert.deepEqual([warning?.code, others], ["latency_not_timed", []]);
  assert.match(warning?.message ?? "", /together do not fit .*no memory for a buffer of 1126 TB$/);
});

test("evaluateModels() gives the same accuracy in every run", async () => {
  const [original, result] = [
    await productModel("third", 1 / 3),
    await productModel("other", 0.34),
  ];
  const first = await evaluate(original, result);
  assert.deepEqual((await evaluate(original, result)).accuracy, first.accuracy);
});

test("evaluateModels() warns of a result below the floor on generated data", async () => {
  const [original, result] = [await productModel("one", 1), await productModel("minus", -1)];
  const { accuracy, warnings } = await evaluate(original, result);
  assert.equal(Math.round(accuracy.cosine), -1);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["accuracy_below_floor", "latency_not_timed"],
  );
});

test("evaluateModels() fails a result below the floor on the caller's data", async () => {
  const [original, result] = [await productModel("one", 1), await productModel("minus", -1)];
  const dataPath = await floatsNpz("x", [3, 1, 2], [1, 2, 3, 4, 5, 6]);
  await assert.rejects(evaluate(original, result, { dataPath }), {
    code: "accuracy_below_floor",
    message:
      'Output "y" has cosine similarity -1.0000 to the original\'s; at least 0.9 is required',
  });
});

test("evaluateModels() gives the figures of a result that it fails", async () => {
  const [original, result] = [await productModel("one", 1), await productModel("minus", -1)];
  const dataPath = await floatsNpz("x", [3, 1, 2], [1, 2, 3, 4, 5, 6]);
  const figures: Figures[] = [];
  await assert.rejects(measure(original, result, { dataPath, figures }), {
    code: "accuracy_below_floor",
  });
  const { accuracy, memory, device, latency } = mergeFigures(figures);
  assert.equal(Math.round(accuracy?.cosine ?? 0), -1);
  assert(memory?.originalPeakBytes !== undefined && memory.resultPeakBytes !== undefined);
  assert(device);
  assert.equal(latency, undefined);
});

/** Most tests give latency no time. */
function leaveOutUntimed<Warning extends { readonly code: string }>(warnings: readonly Warning[]) {
  return warnings.filter(({ code }) => code !== "latency_not_timed");
}

test("evaluateModels() measures on the caller's data, at most as many samples as asked for", async () => {
  const [original, result] = [await productModel("one", 1), await productModel("two", 2)];
  const dataPath = await floatsNpz("x", [3, 1, 2], [1, 2, 3, 4, 50, 60]);
  const { accuracy, warnings } = await evaluate(original, result, { dataPath });
  assert.deepEqual([accuracy.data, accuracy.samples], ["caller", 2]);
  assert.deepEqual(leaveOutUntimed(warnings), [
    {
      code: "samples_left_out",
      message: "1 sample of the evaluation data was not used",
    },
  ]);
  assert.deepEqual(accuracy.outputs, [
    { name: "y", sqnrDb: 0, cosine: 1, maxAbsoluteError: 7, top1Agreement: 1 },
  ]);
});

test("evaluateModels() warns of data with NaN, and compares what is finite", async () => {
  const [original, result] = [await productModel("one", 1), await productModel("two", 2)];
  const dataPath = await floatsNpz("x", [2, 1, 2], [1, 2, NaN, 4]);
  const { accuracy, warnings } = await evaluate(original, result, { dataPath });
  assert.equal(accuracy.outputs[0]?.maxAbsoluteError, 3);
  assert.deepEqual(leaveOutUntimed(warnings), [
    {
      code: "output_not_finite",
      message:
        'Output "y" of the original is not finite in 2 of 4 elements; input "x" of sample 2 has NaN',
    },
  ]);
});

test("evaluateModels() refuses data on which no output is finite", async () => {
  const original = await productModel("one", 1);
  const dataPath = await floatsNpz("x", [1, 1, 2], [NaN, 4]);
  const figures: Figures[] = [];
  await assert.rejects(measure(original, original, { dataPath, figures }), {
    code: "evaluation_data_invalid",
    message:
      "The original's outputs are not finite on any sample of the evaluation data: " +
      'input "x" of sample 1 has NaN',
  });
  assert.equal(mergeFigures(figures).accuracy, undefined);
});

test("evaluateModels() gives no accuracy of a model whose outputs are not finite", async () => {
  const original = await productModel("nan", NaN);
  const figures: Figures[] = [];
  await measure(original, original, { figures });
  assert.equal(mergeFigures(figures).accuracy, undefined);
  assert.deepEqual(
    figures.flatMap(({ warnings = [] }) => warnings.map(({ code }) => code)),
    ["output_not_finite", "latency_not_timed"],
  );
});

/** An input that is not a tensor, which the model turns into one. */
function typedInput(name: string, kind: "sequenceType" | "optionalType") {
  return {
    name,
    type: { value: { case: kind, value: { elemType: tensorInfo("", [2]).type ?? {} } } },
  };
}

test("evaluateModels() says which input it cannot give a value to", async () => {
  const path = join(folder, "sequence.onnx");
  await writeTinyModel(path, {
    input: [typedInput("list", "sequenceType")],
    output: [tensorInfo("y", ["n"])],
    node: [node("ConcatFromSequence", ["list"], ["y"], [integerAttribute("axis", 0)])],
  });
  const dataPath = await floatsNpz("list", [1, 2], [1, 2]);
  for (const options of [{}, { dataPath }]) {
    await assert.rejects(evaluate(path, path, options), {
      code: "evaluation_failed",
      message: 'Input "list" takes no tensor, which cannot be evaluated',
    });
  }
  const optional = join(folder, "optional.onnx");
  await writeTinyModel(optional, {
    input: [typedInput("perhaps", "optionalType")],
    output: [tensorInfo("y", [2])],
    node: [node("OptionalGetElement", ["perhaps"], ["y"])],
  });
  await assert.rejects(evaluate(optional, optional), {
    code: "evaluation_failed",
    message: /perhaps/,
  });
});

test("evaluateModels() runs a model without inputs once, and takes no data for it", async () => {
  const path = join(folder, "constant.onnx");
  await writeTinyModel(path, {
    output: [tensorInfo("y", [2])],
    initializer: [floatInitializer("w", [2], (index) => index)],
    node: [node("Neg", ["w"], ["y"])],
  });
  const { accuracy } = await evaluate(path, path);
  assert.deepEqual([accuracy.samples, accuracy.sqnrDb], [1, 150]);
  const dataPath = await floatsNpz("x", [1, 2], [1, 2]);
  await assert.rejects(evaluate(path, path, { dataPath }), {
    code: "evaluation_data_invalid",
    message: "The model has no inputs, so that there is nothing to evaluate it on",
  });
});

test("evaluateModels() names the sample whose shape the model refuses, and both shapes", async () => {
  const path = join(folder, "multiples.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", ""]), tensorInfo("z", [1, 2])],
    output: [tensorInfo("y", ["n", 2])],
    node: [node("Add", ["x", "z"], ["y"])],
  });
  const x = await floatsNpz("x", [2, 1, 3], [1, 2, 3, 4, 5, 6]);
  const z = await floatsNpz("z", [2, 1, 2], [1, 2, 3, 4]);
  const dataPath = await joinNpz("both", [x, z]);
  await assert.rejects(evaluate(path, path, { dataPath }), {
    code: "evaluation_data_invalid",
    message:
      /^The original could not be run on sample 1 of 2, x: float32\[1,3\], z: float32\[1,2\] where the model takes x: float32\[n,\?\], z: float32\[1,2\]: .*Add/,
  });
});

test("evaluateModels() blames the data where the original cannot be run on it", async () => {
  const path = join(folder, "reshape.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n"])],
    output: [tensorInfo("y", ["m", 4])],
    initializer: [
      { name: "shape", dims: [2n], dataType: TensorProto_DataType.INT64, int64Data: [-1n, 4n] },
    ],
    node: [node("Reshape", ["x", "shape"], ["y"])],
  });
  const dataPath = await floatsNpz("x", [1, 3], [1, 2, 3]);
  await assert.rejects(evaluate(path, path, { dataPath }), { code: "evaluation_data_invalid" });
});

test("evaluateModels() leaves out outputs that are not tensors of numbers, and says so", async () => {
  const path = join(folder, "mixed.onnx");
  const scale = floatInitializer("scale", [], () => 0.5);
  const zero = {
    name: "zero",
    dataType: TensorProto_DataType.INT4,
    dims: [],
    rawData: Uint8Array.of(0),
  };
  await writeTinyModel(
    path,
    {
      input: [tensorInfo("x", [1, 8])],
      output: [
        tensorInfo("y", [1, 8]),
        tensorInfo("codes", [1, 8], TensorProto_DataType.INT4),
        {
          name: "list",
          type: {
            value: { case: "sequenceType", value: { elemType: tensorInfo("", [1, 8]).type ?? {} } },
          },
        },
      ],
      initializer: [scale, zero],
      node: [
        node("Relu", ["x"], ["y"]),
        node("QuantizeLinear", ["x", "scale", "zero"], ["codes"]),
        node("SequenceConstruct", ["x"], ["list"]),
      ],
    },
    { opset: 21 },
  );
  const { accuracy, warnings } = await evaluate(path, path);
  assert.deepEqual(
    accuracy.outputs.map(({ name }) => name),
    ["y"],
  );
  assert.deepEqual(
    warnings.map(({ message }) => message),
    [
      'Output "codes" holds elements of type int4 and was not compared',
      'Output "list" holds no tensor and was not compared',
      "Latency was not timed: the recipe's evaluation.latencyBudgetSeconds is 0",
    ],
  );
});

test("evaluateModels() compares half-precision inputs and outputs and flags", async () => {
  const path = join(folder, "half.onnx");
  await writeTinyModel(path, {
    input: [
      tensorInfo("x", ["batch", 4], TensorProto_DataType.FLOAT16),
      tensorInfo("mask", [1, 4], TensorProto_DataType.BOOL),
    ],
    output: [
      tensorInfo("y", ["batch", 4], TensorProto_DataType.FLOAT16),
      tensorInfo("z", [1, 4], TensorProto_DataType.BOOL),
    ],
    node: [node("Neg", ["x"], ["y"]), node("Not", ["mask"], ["z"])],
  });
  const { accuracy } = await evaluate(path, path);
  assert.deepEqual(
    accuracy.outputs.map(({ sqnrDb, top1Agreement }) => [sqnrDb, top1Agreement]),
    [
      [150, 1],
      [150, null],
    ],
  );
});

test("evaluateModels() takes a result of another shape for zeros, and says so", async () => {
  const original = await productModel("one", 1);
  const path = join(folder, "wide.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["batch", 2])],
    output: [tensorInfo("y", ["batch", 4])],
    node: [node("Concat", ["x", "x"], ["y"], [integerAttribute("axis", 1)])],
  });
  const { accuracy, warnings } = await evaluate(original, path);
  assert.deepEqual([accuracy.sqnrDb, accuracy.cosine], [0, 0]);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ["output_shape_differs", "accuracy_below_floor", "latency_not_timed"],
  );
});

test("evaluateModels() says which model is broken", async () => {
  const original = await productModel("one", 1);
  const broken = join(folder, "broken.onnx");
  await writeFile(broken, "not a model");
  await assert.rejects(evaluate(original, broken), {
    code: "evaluation_failed",
    message: /^The result could not be run/,
  });
  await assert.rejects(evaluate(broken, original), {
    code: "evaluation_failed",
    message: /^The original could not/,
  });
  await assert.rejects(evaluate(original, join(folder, "absent.onnx")), {
    code: "evaluation_failed",
  });
});

test("evaluateModels() gives up on a model that runs on no generated input, with the runtime's reason", async () => {
  const path = join(folder, "picky.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", 3])],
    output: [tensorInfo("y", ["a", "b"])],
    initializer: [
      { name: "shape", dims: [2n], dataType: TensorProto_DataType.INT64, int64Data: [-1n, 1001n] },
    ],
    node: [node("Reshape", ["x", "shape"], ["y"])],
  });
  await assert.rejects(evaluate(path, path), {
    code: "evaluation_failed",
    message: /runs on none of \d generated inputs; give evaluation data\. On x: float32\[1,3\]: /,
  });
});

test(
  "evaluateModels() ends all processes at once when it is aborted",
  { skip: process.platform !== "linux" },
  async () => {
    const controller = new AbortController();
    const reason = new Error("Cancelled by the caller");
    const onProgress = (fraction: number) => fraction > 0.5 && controller.abort(reason);
    const work = evaluate(realModel("ocr-orientation"), realModel("ocr-orientation"), {
      evaluation: { ...evaluation, latencyBudgetSeconds: 3600 },
      signal: controller.signal,
      onProgress,
    });
    await assert.rejects(work, reason);
    assert.equal(await readFile(`/proc/self/task/${process.pid}/children`, "utf8"), "");
  },
);

test("evaluateModels() starts nothing once it is aborted", async () => {
  const signal = AbortSignal.abort(new Error("Too late"));
  await assert.rejects(evaluate("one.onnx", "two.onnx", { signal }), { message: "Too late" });
});
