import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  pipelineManifest,
  type Balance,
  type PipelineManifest,
} from "../../../src/contract/jobs/pipeline.ts";
import { tensorNumbers, type TensorData } from "../../../src/engine/runtime/tensor-data.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { planPipeline } from "../../../src/engine/pipeline/plan-pipeline.ts";
import { writePipeline } from "../../../src/engine/pipeline/write-pipeline.ts";
import { pythonMissing, runPython } from "../../support/python.ts";
import { realModel, realModelMissing } from "../../support/real-models.ts";
import { findRunnableSample, runModel, runPipeline } from "../../support/run-pipeline.ts";
import {
  node,
  graphAttribute,
  tensorInfo,
  floatInitializer,
  writeTinyModel,
} from "../../support/tiny-model.ts";

let folder = "";
before(async () => (folder = await mkdtemp(join(tmpdir(), "pipeline-"))));
after(() => rm(folder, { recursive: true }));

const { signal } = new AbortController();

interface Cutting {
  stages?: number;
  maxStageBytes?: number;
  balance?: Balance;
}

async function openAndPlan(path: string, { balance = "bytes", ...options }: Cutting) {
  const model = await openModel(path, 2 ** 40);
  const plan = await planPipeline(model, {
    balance,
    ...options,
    scratchDirectory: folder,
    threads: 1,
    signal,
  });
  return { model, plan };
}

async function cut(
  path: string,
  cutting: Cutting,
): Promise<{ directory: string; manifest: PipelineManifest }> {
  const { model, plan } = await openAndPlan(path, cutting);
  const directory = await mkdtemp(join(folder, "stages-"));
  const { manifest } = await writePipeline(model, plan, directory, signal);
  return { directory, manifest };
}

/** A model's outputs on a sample. */
async function runWhole(path: string, optimize: boolean) {
  const sample = await findRunnableSample(path);
  return { sample, whole: await runModel(path, { sample, optimize }) };
}

/** Of the models that several tests cut. */
const runs = new Map<string, ReturnType<typeof runWhole>>();

/** Runs model and pipeline on the same sample; gives both outputs. */
async function runBoth(
  path: string,
  { directory, manifest }: Awaited<ReturnType<typeof cut>>,
  optimize: boolean,
) {
  const key = `${path} ${optimize}`;
  const run = runs.get(key) ?? runWhole(path, optimize);
  runs.set(key, run);
  const { sample, whole } = await run;
  return { whole, chained: await runPipeline(directory, manifest, { sample, optimize }) };
}

function assertIdentical({ whole, chained }: { whole: TensorData[]; chained: TensorData[] }): void {
  assert.deepEqual(
    chained.map(({ name, shape }) => ({ name, shape })),
    whole.map(({ name, shape }) => ({ name, shape })),
  );
  for (const [index, { name, bytes }] of whole.entries()) {
    assert.ok(
      Buffer.from(bytes).equals(chained[index]?.bytes ?? new Uint8Array()),
      `Output "${name}" differs`,
    );
  }
}

function largestDifference({
  whole,
  chained,
}: {
  whole: TensorData[];
  chained: TensorData[];
}): number {
  let largest = 0;
  for (const [index, output] of whole.entries()) {
    const others = chained[index] ? tensorNumbers(chained[index]) : [];
    for (const [at, number] of tensorNumbers(output).entries()) {
      largest = Math.max(largest, Math.abs(number - Number(others[at])));
    }
  }
  return largest;
}

for (const name of ["ocr-detection", "ocr-recognition", "ocr-orientation"] as const) {
  for (const stages of [2, 3, 8]) {
    test(`${name} in ${stages} stages gives the model's outputs bit for bit`, async (t) => {
      const pipeline = await cut(realModel(name), { stages });
      assertIdentical(await runBoth(realModel(name), pipeline, false));
      const difference = largestDifference(await runBoth(realModel(name), pipeline, true));
      const { manifest } = pipeline;
      t.diagnostic(
        `bytes of stages ${manifest.stages.map(({ load }) => load).join(", ")}; bytes across cuts ${manifest.cuts.map(({ bytes }) => bytes).join(", ")}; largest difference with optimizations ${difference}`,
      );
      assert.ok(difference < 1e-4);
    });
  }
}

for (const balance of ["flops", "time"] as const) {
  test(`ocr-detection balanced by ${balance} gives the model's outputs bit for bit`, async () => {
    const pipeline = await cut(realModel("ocr-detection"), { stages: 3, balance });
    assertIdentical(await runBoth(realModel("ocr-detection"), pipeline, false));
  });
}

test("a voice model with If and LSTM in subgraphs is cut around them", async () => {
  const pipeline = await cut(realModel("voice-v5"), { stages: 2 });
  assertIdentical(await runBoth(realModel("voice-v5"), pipeline, false));
});

test(
  "a transformer is cut where few values cross",
  { skip: await realModelMissing("minilm") },
  async () => {
    const pipeline = await cut(realModel("minilm"), { stages: 3 });
    assertIdentical(await runBoth(realModel("minilm"), pipeline, false));
    for (const { tensors } of pipeline.manifest.cuts) assert.ok(tensors.length <= 3);
  },
);

test("maxStageBytes finds the least number of stages", async () => {
  const { manifest } = await cut(realModel("ocr-detection"), { maxStageBytes: 1_300_000 });
  const bytes = manifest.stages.map(({ parameterBytes }) => parameterBytes);
  assert.ok(bytes.every((size) => size <= 1_300_000));
  const total = bytes.reduce((sum, size) => sum + size, 0);
  assert.ok(
    bytes.length >= total / 1_300_000 && bytes.length <= total / 1_300_000 + 2,
    bytes.join(),
  );
});

test("writePipeline() writes a manifest that names every file and link", async () => {
  const { directory, manifest } = await cut(realModel("ocr-orientation"), { stages: 3 });
  const written: unknown = JSON.parse(await readFile(join(directory, "pipeline.json"), "utf8"));
  assert.deepEqual(pipelineManifest.parse(written), manifest);
  const names = ["pipeline.json", "stage-01.onnx", "stage-02.onnx", "stage-03.onnx"];
  assert.deepEqual((await readdir(directory)).toSorted(), names);
  assert.deepEqual(manifest.stages[0]?.inputs, [{ name: "x", from: 0 }]);
  assert.deepEqual(manifest.outputs, [{ name: "softmax_0.tmp_0", from: 3 }]);
});

test("stages pass the official checker", { skip: pythonMissing }, async () => {
  const { directory, manifest } = await cut(realModel("ocr-recognition"), { stages: 3 });
  const program =
    "import sys, onnx; [onnx.checker.check_model(path, full_check=True) for path in sys.argv[1:]]";
  await runPython(
    program,
    manifest.stages.map(({ model }) => join(directory, model)),
  );
});

/** A chain of products x · a · b · c that adds the input and the first product again at its end. */
async function chain(
  name: string,
  changes: Parameters<typeof writeTinyModel>[1] = {},
): Promise<string> {
  const path = join(folder, `${name}.onnx`);
  const square = (content: string) =>
    floatInitializer(content, [4, 4], (index) => Math.sin(index + content.charCodeAt(0)));
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["batch", 4])],
    output: [tensorInfo("y", ["batch", 4])],
    initializer: ["a", "b", "c"].map(square),
    node: [
      node("MatMul", ["x", "a"], ["h1"]),
      node("MatMul", ["h1", "b"], ["h2"]),
      node("MatMul", ["h2", "c"], ["h3"]),
      node("Sum", ["h3", "h1", "x"], ["y"]),
    ],
    ...changes,
  });
  return path;
}

test("a skip connection passes the stages between", async () => {
  const path = await chain("skip");
  const pipeline = await cut(path, { stages: 3 });
  assertIdentical(await runBoth(path, pipeline, false));
  assert.deepEqual(
    pipeline.manifest.cuts.map(({ tensors }) => tensors.map(({ name }) => name)),
    [["h1"], ["h1", "h2"]],
  );
  assert.deepEqual(pipeline.manifest.stages[2]?.inputs, [
    { name: "x", from: 0 },
    { name: "h1", from: 1 },
    { name: "h2", from: 2 },
  ]);
});

test("nodes may come in any order, and weights may be shared or held in Constant nodes", async () => {
  const w = { ...floatInitializer("", [4, 4], (index) => index / 16) };
  const path = await chain("shared", {
    node: [
      node("MatMul", ["h2", "w"], ["h3"]),
      node("Constant", [], ["w"], [{ name: "value", type: 4, t: w }]),
      node("Sum", ["h3", "a"], ["y"]),
      node("MatMul", ["x", "a"], ["h1"]),
      node("MatMul", ["h1", "w"], ["h2"]),
    ],
  });
  const pipeline = await cut(path, { stages: 4 });
  assertIdentical(await runBoth(path, pipeline, false));
  assert.deepEqual(
    pipeline.manifest.stages.map(({ parameterBytes }) => parameterBytes),
    [64, 64, 64, 64],
  );
});

test("a model of the first opset is cut too", async () => {
  const path = join(folder, "old.onnx");
  const weight = (name: string) => floatInitializer(name, [64, 64], (index) => Math.sin(index));
  await writeTinyModel(
    path,
    {
      input: [tensorInfo("x", [2, 64])],
      output: [tensorInfo("z", [2, 64])],
      initializer: [weight("w"), weight("v")],
      node: [node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["y", "v"], ["z"])],
    },
    { opset: 7 },
  );
  assertIdentical(await runBoth(path, await cut(path, { stages: 2 }), false));
});

test("a subgraph takes values from earlier stages", async () => {
  const branch = (operator: string) => ({
    output: [tensorInfo("out", ["batch", 4])],
    node: [node(operator, ["h1", "h2"], ["sum"]), node("MatMul", ["sum", "c"], ["out"])],
  });
  const path = await chain("captures", {
    input: [tensorInfo("x", ["batch", 4]), tensorInfo("flag", [], TensorProto_DataType.BOOL)],
    node: [
      node("MatMul", ["x", "a"], ["h1"]),
      node("MatMul", ["h1", "b"], ["h2"]),
      node(
        "If",
        ["flag"],
        ["y"],
        [
          graphAttribute("then_branch", branch("Add")),
          graphAttribute("else_branch", branch("Mul")),
        ],
      ),
    ],
  });
  const pipeline = await cut(path, { stages: 3 });
  assertIdentical(await runBoth(path, pipeline, false));
  assert.deepEqual(
    pipeline.manifest.stages[2]?.inputs.map(({ name }) => name),
    ["flag", "h1", "h2"],
  );
});

test("a stage has the functions that it calls, and no others", async () => {
  const path = join(folder, "functions.onnx");
  const opsetImport = [
    { domain: "", version: 17n },
    { domain: "own", version: 1n },
  ];
  const body = (name: string, called: string, domain: string) => ({
    name,
    domain: "own",
    input: ["i"],
    output: ["o"],
    opsetImport,
    node: [{ ...node(called, ["i"], ["o"]), domain }],
  });
  await writeTinyModel(
    path,
    {
      input: [tensorInfo("x", ["batch", 4])],
      output: [tensorInfo("y", ["batch", 4])],
      node: [
        { ...node("Outer", ["x"], ["h"]), domain: "own" },
        { ...node("Other", ["h"], ["y"]), domain: "own" },
      ],
    },
    {
      domains: ["own"],
      functions: [
        body("Outer", "Inner", "own"),
        body("Inner", "Relu", ""),
        body("Other", "Neg", ""),
      ],
    },
  );
  const pipeline = await cut(path, { stages: 2, balance: "flops" });
  assertIdentical(await runBoth(path, pipeline, false));
  const functions = pipeline.manifest.stages.map(async ({ model }) => {
    const stage = await openModel(join(pipeline.directory, model), 2 ** 20);
    return stage.proto.functions.map(({ name }) => name).toSorted();
  });
  assert.deepEqual(await Promise.all(functions), [["Inner", "Outer"], ["Other"]]);
});

test("the time of a function's nodes counts for the stage that calls it", async () => {
  const opsetImport = [{ domain: "", version: 17n }];
  const calm = { ...node("Relu", ["i"], ["o"]), name: "body" };
  const path = join(folder, "timed.onnx");
  const call = (from: string, to: string) => ({ ...node("Own", [from], [to]), domain: "own" });
  await writeTinyModel(
    path,
    {
      input: [tensorInfo("x", ["batch", 4])],
      output: [tensorInfo("y", ["batch", 4])],
      node: [call("x", "h1"), call("h1", "h2"), call("h2", "y")],
    },
    {
      domains: ["own"],
      functions: [
        { name: "Own", domain: "own", input: ["i"], output: ["o"], opsetImport, node: [calm] },
      ],
    },
  );
  const { plan } = await openAndPlan(path, { stages: 3, balance: "time" });
  const [first, second, third] = plan.stages.map(({ load }) => load);
  assert.ok(first !== undefined && first > 0);
  assert.deepEqual([second, third], [first, first]);
});

test("outputs that no node makes come from the last stage", async () => {
  const path = await chain("handed-through", {
    output: [
      tensorInfo("y", ["batch", 4]),
      tensorInfo("a", [4, 4]),
      tensorInfo("h1", ["batch", 4]),
    ],
  });
  const pipeline = await cut(path, { stages: 2 });
  assertIdentical(await runBoth(path, pipeline, false));
});

test("no cut goes through a value that is not a tensor", async () => {
  const path = await chain("sequence", {
    node: [
      node("SequenceConstruct", ["x", "x"], ["list"]),
      node("ConcatFromSequence", ["list"], ["wide"], [{ name: "axis", type: 2, i: 0n }]),
      node("MatMul", ["wide", "a"], ["y"]),
    ],
  });
  const { plan } = await openAndPlan(path, { stages: 2, balance: "flops" });
  assert.deepEqual(
    plan.stages.map(({ steps }) => steps.length),
    [2, 1],
  );
  await assert.rejects(openAndPlan(path, { stages: 3 }), {
    code: "recipe_unsupported",
    message: "The model can be cut into 2 stages at most, and stages is 3",
  });
});

test("a weight is dequantized on the side of the cut on which it is used", async () => {
  const quantized = (name: string) => ({
    name,
    dims: [4n, 4n],
    dataType: TensorProto_DataType.INT8,
    rawData: Uint8Array.from({ length: 16 }, (_, index) => index),
  });
  const path = await chain("dequantized", {
    initializer: [quantized("a8"), quantized("b8"), floatInitializer("scale", [], () => 0.1)],
    node: [
      node("DequantizeLinear", ["a8", "scale"], ["a"]),
      node("DequantizeLinear", ["b8", "scale"], ["b"]),
      node("MatMul", ["x", "a"], ["h"]),
      node("MatMul", ["h", "b"], ["y"]),
    ],
  });
  const pipeline = await cut(path, { stages: 2 });
  assertIdentical(await runBoth(path, pipeline, false));
  assert.deepEqual(
    pipeline.manifest.cuts.map(({ tensors }) => tensors.map(({ name }) => name)),
    [["h"]],
  );
});

test("planPipeline() says what stands against the wanted stages", async () => {
  const path = await chain("refused");
  const refusals: [Cutting, RegExp][] = [
    [{ stages: 5 }, /can be cut into 4 stages at most, and stages is 5/],
    [{ maxStageBytes: 63 }, /MatMul "" has 64 bytes, and maxStageBytes is 63/],
    [{ stages: 2, maxStageBytes: 64 }, /maxStageBytes 64 needs 3 stages, and stages is 2/],
  ];
  for (const [cutting, message] of refusals) {
    await assert.rejects(openAndPlan(path, cutting), { code: "recipe_unsupported", message });
  }
});

test("planPipeline() leaves nothing in its scratch folder", async () => {
  const scratchDirectory = await mkdtemp(join(folder, "scratch-"));
  const model = await openModel(await chain("clean"), 2 ** 20);
  await planPipeline(model, { balance: "time", stages: 2, scratchDirectory, threads: 1, signal });
  assert.deepEqual(await readdir(scratchDirectory), []);
});
