import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { JobReport } from "../../../scripts/job-report.ts";
import { hashFile, repeatJob } from "../../../scripts/repeat-job.ts";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import type { CompressionReport } from "../../../src/engine/compression-report.ts";
import type { CandidateRunner } from "../../../src/engine/candidate.ts";
import { AttributeProto_AttributeType as AttributeType } from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { readTensor } from "../../../src/engine/onnx/read-tensor.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { quantizeRange } from "../../../src/engine/quantize/formats/multiply-static.ts";
import { writeFloatsNpz } from "../../support/npz.ts";
import { pythonMissing, runPython } from "../../support/python.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { createRunner, fixedCandidates } from "./candidates.ts";
import { compareResult, contribTarget, makeFolder, weightNamed } from "./compress.ts";

const calibration = { data: "file:///samples.npz", samples: 8 } as const;
const shape = [1, 4, 16, 16];
const normal = createNormal(createRandom(5));
const lastAxis = { name: "axes", type: AttributeType.INTS, ints: [-1n] };
const noKeptAxes = integerAttribute("keepdims", 0);
const draw = (count: number) => Array.from({ length: count }, () => normal() / 2);

/** A convolution that gives a product its inputs, and samples. */
async function writeModels(folder: string, scale = 1): Promise<{ model: string; data: string }> {
  const model = join(folder, "original.onnx");
  await writeTinyModel(model, {
    node: [
      node("Conv", ["x", "kernel"], ["convolved"]),
      node("Mul", ["convolved", "scale"], ["scaled"]),
      node("MatMul", ["scaled", "matrix"], ["y"]),
    ],
    input: [tensorInfo("x", shape)],
    output: [tensorInfo("y", [1, 8, 14, 32])],
    initializer: [
      floatInitializer("kernel", [8, 4, 3, 3], normal),
      floatInitializer("scale", [14], () => scale),
      floatInitializer("matrix", [14, 32], normal),
    ],
  });
  await writeFloatsNpz(folder, "x", { shape: [8, ...shape], values: draw(8 * 1024) });
  return { model, data: join(folder, "x.npz") };
}

async function compress(
  folder: string,
  recipe: PartialRecipe,
  { scale, candidates }: { scale?: number; candidates?: CandidateRunner } = {},
) {
  const files = await writeModels(folder, scale);
  const report = await compressStatic(files, folder, recipe, candidates);
  return { model: files.model, report };
}

function compressStatic(
  { model, data }: { model: string; data: string },
  folder: string,
  recipe: PartialRecipe,
  candidates?: CandidateRunner,
) {
  return compressModel(model, {
    kind: "compress",
    recipe: resolveRecipe({ scheme: "int8-static", ...recipe }),
    target: contribTarget,
    calibrationPath: data,
    outputDirectory: folder,
    candidates,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  });
}

test(
  "int8-static quantizes around convolutions and in front of products",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const { model, report } = await compress(folder.path, { calibration });
    const { operators, sqnrDb, opset } = await compareResult(model, folder.path);
    assert.ok(opset >= 13);
    assert.equal(operators["QuantizeLinear"], 3);
    assert.equal(operators["DequantizeLinear"], 5);
    assert.ok(sqnrDb > 25, `${sqnrDb} dB`);
    assert.equal(report.calibration?.fittedWeights, 2);
    const { form } = weightNamed(report, "kernel");
    assert.equal(form, "int8 with a scale for each output, inputs in uint8 by calibration");
  },
);

/** Convolutions with what exporters leave between them. */
async function writeNetwork(folder: string): Promise<string> {
  const file = join(folder, "network.onnx");
  const positive = () => 0.5 + Math.abs(normal());
  await writeTinyModel(file, {
    node: [
      node("Conv", ["x", "first"], ["a"]),
      node("BatchNormalization", ["a", "gain", "shift", "mean", "variance"], ["b"]),
      node("Identity", ["b"], ["c"]),
      node("Relu", ["c"], ["d"]),
      node("Conv", ["d", "second"], ["e"]),
      node("Add", ["e", "bias"], ["f"]),
      node("Div", ["f", "root"], ["g"]),
      node("Erf", ["g"], ["h"]),
      node("Add", ["h", "one"], ["i"]),
      node("Mul", ["f", "i"], ["j"]),
      node("Mul", ["j", "half"], ["k"]),
      node("Conv", ["k", "third"], ["y"], [integerAttribute("group", 8)]),
    ],
    input: [tensorInfo("x", shape)],
    output: [tensorInfo("y", [1, 8, 10, 10])],
    initializer: [
      floatInitializer("first", [8, 4, 3, 3], normal),
      ...["gain", "shift", "mean"].map((name) => floatInitializer(name, [8], normal)),
      floatInitializer("variance", [8], positive),
      floatInitializer("second", [8, 8, 3, 3], normal),
      floatInitializer("bias", [1, 8, 1, 1], normal),
      floatInitializer("root", [], () => Math.SQRT2),
      floatInitializer("one", [], () => 1),
      floatInitializer("half", [], () => 0.5),
      floatInitializer("third", [8, 1, 3, 3], normal),
    ],
  });
  return file;
}

const optimizedOperators = `
import json, sys
import onnx, onnxruntime as ort
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
options.optimized_model_filepath = sys.argv[1] + ".optimized"
options.log_severity_level = 3
ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(json.dumps([node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node]))
`;

test(
  "the runtime computes a convolution with its normalization, bias and activation in integers",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const [{ data }, model] = [await writeModels(folder.path), await writeNetwork(folder.path)];
    const recipe = { calibration, minElements: 0, operators: "contrib" } as const;
    await compressStatic({ model, data }, folder.path, recipe);
    const { sqnrDb } = await compareResult(model, folder.path);
    assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
    const file = join(folder.path, "model.onnx");
    const operators: string[] = JSON.parse(await runPython(optimizedOperators, [file]));
    const counts = Object.groupBy(operators, (operator) => operator);
    assert.equal(counts["QLinearConv"]?.length, 3);
    assert.equal(counts["Gelu"]?.length, 1);
    const others = ["Add", "BatchNormalization", "Conv", "Identity", "Relu"];
    assert.deepEqual(
      operators.filter((each) => others.includes(each)),
      [],
    );
  },
);

/** What opset 10 has in attributes, and a Softmax that newer ones have a Reshape behind. */
async function writeOldNetwork(folder: string): Promise<string> {
  const file = join(folder, "old.onnx");
  const limit = (name: string, f: number) => ({ name, type: AttributeType.FLOAT, f });
  await writeTinyModel(
    file,
    {
      node: [
        node("Conv", ["x", "first"], ["a"]),
        node("Clip", ["a"], ["b"], [limit("min", 0), limit("max", 6)]),
        node("Conv", ["b", "second"], ["m"]),
        // Outputs of training may be named as absent.
        node("BatchNormalization", ["m", "gain", "shift", "shift", "gain"], ["c", "", "", "", ""]),
        node("Softmax", ["c"], ["d"], [integerAttribute("axis", 3)]),
        node("MatMul", ["d", "matrix"], ["y"]),
      ],
      input: [tensorInfo("x", shape)],
      output: [tensorInfo("y", [1, 8, 12, 32])],
      initializer: [
        floatInitializer("first", [8, 4, 3, 3], normal),
        floatInitializer("second", [8, 8, 3, 3], () => normal() / 16),
        floatInitializer("gain", [8], () => 0.9),
        floatInitializer("shift", [8], () => 0.1),
        floatInitializer("matrix", [12, 32], normal),
      ],
    },
    { opset: 10 },
  );
  return file;
}

test("int8-static rounds what a Clip of an old opset gives", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const [{ data }, model] = [await writeModels(folder.path), await writeOldNetwork(folder.path)];
  const recipe = { calibration, minElements: 0 } as const;
  const report = await compressStatic({ model, data }, folder.path, recipe);
  const { operators, sqnrDb } = await compareResult(model, folder.path);
  assert.equal(operators["QuantizeLinear"], 4);
  assert.deepEqual(report.qdq?.unfused, []);
  assert.ok(sqnrDb > 25, `${sqnrDb} dB`);
});

/** A function that is not inlined, behind a convolution. */
async function writeCall(folder: string): Promise<string> {
  const model = join(folder, "function.onnx");
  const constant = (t: ReturnType<typeof floatInitializer>) =>
    node("Constant", [], [t.name ?? ""], [{ name: "value", type: AttributeType.TENSOR, t }]);
  const inner = {
    domain: "local",
    name: "Inner",
    input: ["a"],
    output: ["b"],
    opsetImport: [{ domain: "", version: 18n }],
    node: [
      constant(floatInitializer("w", [14, 32], normal)),
      constant(floatInitializer("k", [8, 8, 1, 1], normal)),
      node("MatMul", ["a", "w"], ["m"]),
      node("Conv", ["m", "k"], ["b"]),
    ],
  };
  await writeTinyModel(
    model,
    {
      node: [
        node("Conv", ["x", "kernel"], ["c"]),
        { ...node("Inner", ["c"], ["y"]), domain: "local" },
      ],
      input: [tensorInfo("x", shape)],
      output: [tensorInfo("y", [1, 8, 14, 32])],
      initializer: [floatInitializer("kernel", [8, 4, 3, 3], normal)],
    },
    { functions: [inner], domains: ["local"] },
  );
  return model;
}

test("weights of functions that stay are not quantized by ranges", async () => {
  await using folder = await makeFolder();
  const [{ data }, model] = [await writeModels(folder.path), await writeCall(folder.path)];
  const report = await compressStatic({ model, data }, folder.path, { calibration });
  assert.match(weightNamed(report, "kernel").form ?? "", /by calibration/v);
  assert.equal(weightNamed(report, "w").reason, "is used in a function");
});

test("inputs of convolutions in functions that stay are not averaged", async () => {
  await using folder = await makeFolder();
  const [{ data }, model] = [await writeModels(folder.path), await writeCall(folder.path)];
  const recipe = { scheme: "int8-weight", calibration, minElements: 0 } as const;
  const report = await compressStatic({ model, data }, folder.path, recipe);
  assert.match(weightNamed(report, "k").form ?? "", /restored at load/v);
});

test("an output whose weights are all 0 keeps its bias", { skip: pythonMissing }, async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "dead.onnx");
  const recipe = { calibration, minElements: 0 } as const;
  await writeTinyModel(model, {
    node: [node("Mul", ["x", "hundred"], ["a"]), node("Conv", ["a", "kernel", "bias"], ["y"])],
    input: [tensorInfo("x", shape)],
    output: [tensorInfo("y", [1, 4, 16, 16])],
    initializer: [
      floatInitializer("hundred", [16], () => 100),
      floatInitializer("kernel", [4, 4, 1, 1], (index) => (index < 4 ? 0 : normal() / 1000)),
      floatInitializer("bias", [4], () => 0.1),
    ],
  });
  const { data } = await writeModels(folder.path);
  await compressStatic({ model, data }, folder.path, recipe);
  const { sqnrDb } = await compareResult(model, folder.path);
  assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
});

test("values that stand for infinity are never quantized", async () => {
  await using folder = await makeFolder();
  const { report } = await compress(folder.path, { calibration }, { scale: 1e30 });
  assert.match(weightNamed(report, "matrix").form ?? "", /restored at load/v);
  assert.match(
    weightNamed(report, "matrix").reason ?? "",
    /"scaled", whose values have no usable range/v,
  );
  assert.match(weightNamed(report, "kernel").form ?? "", /by calibration/v);
  assert.equal(report.calibration?.fittedWeights, 1);
});

test("values that no sample has are never quantized: of another input they have no codes", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "boxes.onnx");
  await writeTinyModel(model, {
    node: [
      node("MatMul", ["x", "first"], ["boxes"]),
      node("ReduceMax", ["boxes"], ["scores"], [lastAxis, noKeptAxes]),
      node("Greater", ["scores", "limit"], ["isFound"]),
      node("Compress", ["boxes", "isFound"], ["found"], [integerAttribute("axis", 0)]),
      node("MatMul", ["found", "second"], ["y"]),
    ],
    input: [tensorInfo("x", ["rows", 16])],
    output: [tensorInfo("boxes", ["rows", 32]), tensorInfo("y", ["found", 16])],
    initializer: [
      floatInitializer("first", [16, 32], normal),
      floatInitializer("second", [32, 16], normal),
      floatInitializer("limit", [], () => 1e9),
    ],
  });
  const data = await writeFloatsNpz(folder.path, "x", { shape: [8, 4, 16], values: draw(512) });
  const report = await compressStatic({ model, data }, folder.path, { calibration });
  assert.match(weightNamed(report, "second").form ?? "", /restored at load/v);
  assert.match(
    weightNamed(report, "second").reason ?? "",
    /"found", whose values have no usable range/v,
  );
  assert.match(weightNamed(report, "first").form ?? "", /by calibration/v);
});

test(
  "a bias that is one number for all outputs stays in floating point",
  { skip: pythonMissing },
  async () => {
    await using folder = await makeFolder();
    const model = join(folder.path, "biased.onnx");
    await writeTinyModel(model, {
      node: [node("Gemm", ["x", "matrix", "bias"], ["y"])],
      input: [tensorInfo("x", [4, 16])],
      output: [tensorInfo("y", [4, 32])],
      initializer: [
        floatInitializer("matrix", [16, 32], normal),
        floatInitializer("bias", [1], () => 0.5),
      ],
    });
    const data = await writeFloatsNpz(folder.path, "x", { shape: [8, 4, 16], values: draw(512) });
    const report = await compressStatic({ model, data }, folder.path, { calibration });
    assert.match(weightNamed(report, "matrix").form ?? "", /by calibration/v);
    const { sqnrDb } = await compareResult(model, folder.path);
    assert.ok(sqnrDb > 30, `${sqnrDb} dB`);
  },
);

/** A model that takes differences of large numbers, in [64, 32], before another product. */
async function writeDifferences(folder: string, offset: number, differences: () => number[]) {
  const model = join(folder, "differences.onnx");
  const weights = differences();
  await writeTinyModel(model, {
    node: [
      node("Add", ["x", "offset"], ["shifted"]),
      node("MatMul", ["shifted", "differences"], ["h"]),
      node("MatMul", ["h", "matrix"], ["y"]),
    ],
    input: [tensorInfo("x", [4, 64])],
    output: [tensorInfo("y", [4, 32])],
    initializer: [
      floatInitializer("offset", [], () => offset),
      floatInitializer("differences", [64, 32], (at) => weights[at] ?? 0),
      floatInitializer("matrix", [32, 32], normal),
    ],
  });
  const values = Array.from({ length: 2048 }, normal);
  return { model, data: await writeFloatsNpz(folder, "x", { shape: [8, 4, 64], values }) };
}

const harmfulWeights = [
  {
    title: "in 8 bits",
    offset: 200,
    // What is rounded of a row is rounded of another too, and cancels.
    differences: () => {
      const rows = draw(32 * 32);
      return [...rows, ...rows.map((value) => -value)];
    },
    form: /^int8 with a scale for each .*, restored at load$/v,
    bytes: 1 / 3,
  },
  {
    title: "in half precision where 8 bits would lose too much",
    offset: 100,
    differences: () => {
      const rows = draw(63 * 32);
      const sumColumn = (column: number) =>
        rows.reduce((sum, value, at) => (at % 32 === column ? sum + value : sum), 0);
      return [...rows, ...Array.from({ length: 32 }, (_, column) => -sumColumn(column))];
    },
    form: /^float16, restored at load$/v,
    bytes: 1 / 2,
  },
];
for (const { title, offset, differences, form, bytes } of harmfulWeights) {
  test(`the operator that loses most stays in floating point, and its weight ${title}`, async () => {
    await using folder = await makeFolder();
    const { model, data } = await writeDifferences(folder.path, offset, differences);
    const recipe = { calibration: { ...calibration, method: "minmax" } } as const;
    const runner = createRunner(model);
    const candidates = fixedCandidates("faster", runner.measureSqnrDb);
    const report = await compressStatic({ model, data }, folder.path, recipe, candidates);
    const harmful = weightNamed(report, "differences");
    assert.match(harmful.form ?? "", form);
    assert.match(harmful.reason ?? "", /too much in integers: -?\d+\.\d dB of SQNR by itself/v);
    assert.ok(harmful.resultBytes <= harmful.originalBytes * bytes);
    assert.match(weightNamed(report, "matrix").form ?? "", /by calibration/v);
    const sqnrDb = (await runner.measureSqnrDb(join(folder.path, "model.onnx"))) ?? NaN;
    assert.ok(sqnrDb >= 21, `${sqnrDb} dB`);
    await repeatJob(await reportJob(report, model, recipe), model, data);
  });
}

test("what operators cost is measured with all weights, those too that are restored", async () => {
  await using folder = await makeFolder();
  const model = join(folder.path, "biased.onnx");
  await writeTinyModel(model, {
    node: [node("Conv", ["x", "kernel", "bias"], ["c"]), node("MatMul", ["c", "matrix"], ["y"])],
    input: [tensorInfo("x", shape)],
    output: [tensorInfo("y", [1, 8, 14, 32])],
    initializer: [
      floatInitializer("kernel", [8, 4, 3, 3], normal),
      floatInitializer("bias", [8], normal),
      floatInitializer("matrix", [14, 32], normal),
    ],
  });
  const data = await writeFloatsNpz(folder.path, "x", { shape: [8, ...shape], values: draw(8192) });
  const readKernel = async (path: string) => {
    const opened = await openModel(path, 2 ** 30);
    const { node: nodes = [], initializer = [] } = opened.proto.graph ?? {};
    const conv = nodes.find(({ opType }) => opType === "Conv");
    const codes = initializer.find(({ name }) => name === "kernel_quantized");
    const bytes = codes && Array.from(readTensor(opened, codes));
    return { isStatic: conv?.input[0]?.endsWith("_rounded") ?? false, bytes };
  };
  const measured: (readonly number[] | undefined)[] = [];
  const candidates: CandidateRunner = {
    budgetSeconds: 20,
    time: async (path) => {
      const ratio = (await readKernel(path)).isStatic ? 1.2 : 0.6;
      return { ratio, low: ratio - 0.1, high: ratio + 0.1, secondsPerRound: 0.1 };
    },
    measureSqnrDb: async (path) => {
      measured.push((await readKernel(path)).bytes);
      return 40;
    },
  };
  const report = await compressStatic({ model, data }, folder.path, { calibration }, candidates);
  assert.match(weightNamed(report, "kernel").form ?? "", /restored at load/v);
  const { bytes } = await readKernel(join(folder.path, "model.onnx"));
  assert.ok(bytes?.some((byte) => byte !== 0));
  assert.deepEqual(measured.at(-1), bytes);
});

/** The report of a job whose result is beside its model. */
async function reportJob(
  report: CompressionReport,
  model: string,
  recipe: PartialRecipe,
): Promise<JobReport> {
  const files = report.files.map(async ({ name }) => {
    const file = join(dirname(model), name);
    const { size: bytes } = await stat(file);
    return { name, kind: "model", bytes, sha256: await hashFile(file) } as const;
  });
  return {
    ...report,
    job: "job-0",
    kind: "compress",
    model: { bytes: (await stat(model)).size, sha256: await hashFile(model) },
    target: contribTarget,
    recipe: resolveRecipe({ scheme: "int8-static", ...recipe }),
    halved: [...report.halved],
    restoredAtLoad: [...report.restoredAtLoad],
    weights: [...report.weights],
    files: await Promise.all(files),
  };
}

test("a job whose ranges were chosen by what they lose is repeated from its report", async () => {
  await using folder = await makeFolder();
  const found = [30, 31, 32, 33];
  const candidates: CandidateRunner = {
    budgetSeconds: 20,
    time: () => Promise.resolve({ ratio: 0.6, low: 0.58, high: 0.62, secondsPerRound: 0.1 }),
    measureSqnrDb: () => Promise.resolve(found.shift() ?? 40),
  };
  const { report, model } = await compress(folder.path, { calibration }, { candidates });
  assert.equal(report.calibration?.method, "mse");
  const job = await reportJob(report, model, { calibration });
  const data = join(folder.path, "x.npz");
  await repeatJob(job, model, data);
  await assert.rejects(repeatJob({ ...job, calibration: { method: "minmax" } }, model, data), {
    message: /Repeated, "model.onnx" has the SHA-256/v,
  });
});

test("int8-static without calibration is refused with what to do", async () => {
  await using folder = await makeFolder();
  await assert.rejects(compress(folder.path, {}), {
    code: "recipe_unsupported",
    message: /needs `calibration`: give samples as its `data`, or set `generated`/v,
  });
});

test("codes of a range keep 0 exact", () => {
  assert.deepEqual(quantizeRange({ low: -1, high: 3 }, "uint8"), {
    scale: Math.fround(4 / 255),
    zeroPoint: 64,
  });
  assert.deepEqual(quantizeRange({ low: 2, high: 255 }, "uint8"), { scale: 1, zeroPoint: 0 });
  assert.deepEqual(quantizeRange({ low: -255, high: -2 }, "uint8"), { scale: 1, zeroPoint: 255 });
  assert.deepEqual(quantizeRange({ low: 0, high: 0 }, "uint8"), { scale: 1, zeroPoint: 0 });
  assert.deepEqual(quantizeRange({ low: -127, high: 3 }, "int8"), { scale: 1, zeroPoint: 0 });
  assert.deepEqual(quantizeRange({ low: 0, high: 254 }, "int8"), { scale: 2, zeroPoint: 0 });
});
