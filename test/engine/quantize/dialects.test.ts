import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { clone, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DialectName, dialectNames } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import type { CandidateRunner } from "../../../src/engine/candidate.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";
import { at } from "../../../src/engine/onnx/at.ts";
import {
  AttributeProto_AttributeType as AttributeType,
  type GraphProto,
  ModelProtoSchema,
  type NodeProto,
  TensorProto_DataType as DataType,
  type TensorProto,
  TensorProtoSchema,
} from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import { findDialect } from "../../../src/engine/quantize/dialects.ts";
import { findUnfused } from "../../../src/engine/quantize/formats/find-unfused.ts";
import { writeFloatsNpz } from "../../support/npz.ts";
import { pythonMissing, runPython } from "../../support/python.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { measureSqnrDb } from "./candidates.ts";
import { compareInPython, contribTarget, makeFolder, weightNamed } from "./compress.ts";

const shape = [1, 4, 12, 12];
const normal = createNormal(createRandom(11));
const draw = (count: number) => Array.from({ length: count }, () => normal() / 2);

/** Convolutions with biases and activations, moves of elements, a residual, a product of matrices. */
async function writeNetwork(folder: string): Promise<string> {
  const file = join(folder, "network.onnx");
  const kernelShape = { name: "kernel_shape", type: AttributeType.INTS, ints: [2n, 2n] };
  await writeTinyModel(file, {
    node: [
      node("Conv", ["x", "first", "first_bias"], ["a"]),
      node("Relu", ["a"], ["b"]),
      node("MaxPool", ["b"], ["c"], [kernelShape]),
      node("Conv", ["c", "second", "second_bias"], ["d"]),
      node("Relu", ["d"], ["r"]),
      node("Add", ["c", "r"], ["e"]),
      node("Sigmoid", ["e"], ["s"]),
      node("Conv", ["s", "third"], ["f"], [integerAttribute("group", 8)]),
      node("Shape", ["f"], ["f_shape"]),
      node("Slice", ["f_shape", "zero", "one"], ["batch"]),
      node("Concat", ["batch", "rest"], ["g_shape"], [integerAttribute("axis", 0)]),
      node("Reshape", ["f", "g_shape"], ["g"]),
      node("MatMul", ["g", "matrix"], ["h"]),
      node("Add", ["matrix_bias", "h"], ["y"]),
    ].map((each) => ({ ...each, name: each.output?.[0] ?? "" })),
    input: [tensorInfo("x", shape)],
    output: [tensorInfo("y", [1, 16])],
    initializer: [
      floatInitializer("first", [8, 4, 3, 3], normal),
      floatInitializer("first_bias", [8], normal),
      floatInitializer("second", [8, 8, 1, 1], normal),
      floatInitializer("second_bias", [8], normal),
      floatInitializer("third", [8, 1, 3, 3], normal),
      floatInitializer("matrix", [8 * 49, 16], normal),
      floatInitializer("matrix_bias", [16], normal),
      ...listIntegers({ zero: 0, one: 1, rest: -1 }),
    ],
  });
  await writeFloatsNpz(folder, "x", { shape: [8, ...shape], values: draw(8 * 576) });
  return file;
}

function nodeNamed({ node: nodes }: GraphProto, name: string): NodeProto {
  const found = nodes.find((each) => each.name === name);
  if (found === undefined) throw new Error(`The graph has no node "${name}"`);
  return found;
}

function initializerNamed({ initializer }: GraphProto, name: string): TensorProto {
  const found = initializer.find((each) => each.name === name);
  if (found === undefined) throw new Error(`The graph has no initializer "${name}"`);
  return found;
}

/** Gives a value, and what has its scale, a zero point of its own: values share them. */
function ownZeroPoint(graph: GraphProto, value: string): TensorProto {
  const pairs = graph.node.filter(({ input }) => input[1] === `${value}_scale`);
  const own = clone(TensorProtoSchema, initializerNamed(graph, pairs[0]?.input[2] ?? ""));
  own.name = `${value}_zero_point`;
  graph.initializer.push(own);
  for (const node of pairs) node.input[2] = own.name;
  return own;
}

/** The node that rounds a value. */
function roundingOf({ node: nodes }: GraphProto, value: string | undefined): NodeProto {
  const found = nodes.find(
    ({ opType, input }) => opType === "QuantizeLinear" && input[0] === value,
  );
  if (found === undefined) throw new Error(`No node rounds "${value}"`);
  return found;
}

interface Plant {
  readonly what: string;
  readonly plant: (graph: GraphProto) => void;
  /** The nodes that are named, and the start of the reason of the first. */
  readonly nodes: readonly string[];
  readonly reason: RegExp;
}

const otherScale: Plant = {
  what: "codes of one scale moved to another",
  plant: (graph) => {
    graph.initializer.push(
      create(
        TensorProtoSchema,
        floatInitializer("other", [], () => 0.25),
      ),
    );
    const { output } = roundingOf(graph, "c");
    for (const each of graph.node) {
      const isPair = each.output[0] === output[0] || each.input[0] === output[0];
      if (isPair) each.input[1] = "other";
    }
  },
  nodes: ["c"],
  reason: /^moves "b", which is rounded by another scale after it$/v,
};

const plants: Readonly<Record<DialectName, readonly Plant[]>> = {
  cpu: [
    {
      what: "a result that is also taken as it is",
      plant: (graph) => {
        nodeNamed(graph, "e").input[1] = at(nodeNamed(graph, "d").output, 0);
      },
      nodes: ["d"],
      reason: /^gives "d" in floating point, and ONNX Runtime on CPUs rounds what Conv gives$/v,
    },
    {
      what: "an activation that the codes go beyond",
      plant: (graph) => {
        ownZeroPoint(graph, "b").rawData = Uint8Array.of(3);
      },
      nodes: ["a"],
      reason: /^gives codes beyond the limits of "b"$/v,
    },
    {
      what: "a weight without the zero points that QGemm needs",
      plant: (graph) => {
        nodeNamed(graph, "matrix_DequantizeLinear").input.pop();
      },
      nodes: ["h"],
      reason: /^takes "matrix" without zero points, which ONNX Runtime on CPUs needs for Gemm$/v,
    },
    otherScale,
  ],
  browser: [
    {
      what: "activations in int8",
      plant: (graph) => {
        ownZeroPoint(graph, "x").dataType = DataType.INT8;
      },
      nodes: ["a"],
      reason: /^takes "x_rounded" in int8, and ONNX Runtime Web activations in uint8$/v,
    },
  ],
  tensorrt: [
    {
      what: "a zero point",
      plant: (graph) => {
        ownZeroPoint(graph, "x").rawData = Uint8Array.of(3);
      },
      nodes: ["a"],
      reason: /^takes "x_rounded" with zero points, and TensorRT has none$/v,
    },
  ],
  qnn: [
    {
      what: "a product whose result is not rounded",
      plant: (graph) => {
        const rounding = roundingOf(graph, nodeNamed(graph, "h").output[0]);
        const [codes] = rounding.output;
        graph.node = graph.node.filter((each) => each !== rounding && each.input[0] !== codes);
        nodeNamed(graph, "h").output = ["y"];
      },
      nodes: ["h"],
      reason: /^gives "y" in floating point, and QNN rounds what Gemm gives$/v,
    },
    {
      what: "a product with a scale for each output",
      plant: (graph) => {
        const scale = initializerNamed(graph, "matrix_scale");
        scale.dims = [16n];
        scale.rawData = new Uint8Array(new Float32Array(16).fill(0.01).buffer);
      },
      nodes: ["h"],
      reason: /^takes "matrix" with a scale for each output, which not every QNN has for Gemm$/v,
    },
    otherScale,
  ],
  openvino: [
    {
      what: "an operator that takes what is not rounded",
      plant: (graph) => {
        nodeNamed(graph, "a").input[0] = "x";
      },
      nodes: ["a", "x_quantized_QuantizeLinear"],
      reason: /^takes "x" in floating point$/v,
    },
  ],
};

async function plantIn(file: string, { plant }: Plant): Promise<string> {
  const proto = fromBinary(ModelProtoSchema, await readFile(file));
  if (proto.graph === undefined) throw new Error("A result has no graph");
  plant(proto.graph);
  const planted = file.replace("model.onnx", `planted-${randomUUID()}.onnx`);
  await writeFile(planted, toBinary(ModelProtoSchema, proto));
  return planted;
}

function listIntegers(values: Readonly<Record<string, number>>) {
  return Object.entries(values).map(([name, value]) => ({
    name,
    dims: [1n],
    dataType: DataType.INT64,
    rawData: new Uint8Array(BigInt64Array.of(BigInt(value)).buffer),
  }));
}

async function compressFor(
  dialect: DialectName,
  { model, folder, candidates }: { model: string; folder: string; candidates?: CandidateRunner },
) {
  const outputDirectory = join(folder, dialect);
  await mkdir(outputDirectory);
  const calibration = { data: "file:///samples.npz", samples: 8, method: "minmax" } as const;
  const report = await compressModel(model, {
    kind: "compress",
    recipe: resolveRecipe({ scheme: "int8-static", minElements: 0, dialect, calibration }),
    target: contribTarget,
    calibrationPath: join(folder, "x.npz"),
    outputDirectory,
    candidates,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  });
  return { report, file: join(outputDirectory, "model.onnx") };
}

async function lint(dialect: DialectName, file: string) {
  return findUnfused(await openModel(file, 2 ** 30), findDialect({ dialect }));
}

const countIntegers = `
import json, sys
import onnx, onnxruntime as ort
def count(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = path + ".optimized"
    options.log_severity_level = 3
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    operators = [node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node]
    return sum(each in ("QLinearConv", "QGemm", "MatMulIntegerToFloat") for each in operators)
print(json.dumps([count(path) for path in sys.argv[1:]]))
`;

test(
  "each runtime gets the pairs that it makes a part of its operators",
  { skip: pythonMissing },
  async (context) => {
    await using folder = await makeFolder();
    const model = await writeNetwork(folder.path);
    const files = new Map<DialectName, string>();
    for (const dialect of dialectNames) {
      const { report, file } = await compressFor(dialect, { model, folder: folder.path });
      files.set(dialect, file);
      assert.deepEqual(report.qdq, { ...(await lint(dialect, file)), operators: 4, unfused: [] });
      assert.deepEqual(report.warnings, []);
      const codes = dialect === "tensorrt" ? "int8" : "uint8";
      assert.match(
        weightNamed(report, "first").form ?? "",
        new RegExp(`inputs in ${codes} by`, "v"),
      );
      const scales = dialect === "qnn" ? "one scale" : "a scale for each output";
      assert.match(
        weightNamed(report, "matrix").form ?? "",
        new RegExp(`^int8 with ${scales}`, "v"),
      );
    }
    const compared = await compareInPython([...files.values()].map((file) => [model, file]));
    for (const [position, { sqnrDb }] of compared.entries()) {
      assert.ok(sqnrDb > 30, `${dialectNames[position]}: ${sqnrDb} dB`);
    }
    for (const [dialect, file] of files) {
      for (const each of plants[dialect]) {
        await context.test(`${each.what} is named for ${dialect}`, async () => {
          const { operators, unfused } = await lint(dialect, await plantIn(file, each));
          assert.deepEqual(
            unfused.map(({ node: name }) => name),
            each.nodes,
          );
          assert.match(unfused[0]?.reason ?? "", each.reason);
          assert.equal(operators, each === otherScale ? 4 : 3);
        });
      }
    }
    const cpu = files.get("cpu") ?? "";
    const counted = [cpu];
    for (const each of plants.cpu.filter((plant) => plant !== otherScale)) {
      counted.push(await plantIn(cpu, each));
    }
    assert.deepEqual(JSON.parse(await runPython(countIntegers, counted)), [4, 3, 3, 3]);
  },
);

for (const [low, high] of [
  [-1, 6],
  [-7, 7],
  [0.5, 2],
] as const) {
  test(`ONNX Runtime takes a convolution and a Clip from ${low} to ${high}`, async () => {
    await using folder = await makeFolder();
    const model = join(folder.path, "clip.onnx");
    await writeTinyModel(model, {
      node: [
        node("Conv", ["x", "first"], ["a"]),
        node("Clip", ["a", "low", "high"], ["b"]),
        node("Conv", ["b", "second"], ["y"]),
      ],
      input: [tensorInfo("x", shape)],
      output: [tensorInfo("y", [1, 8, 8, 8])],
      initializer: [
        floatInitializer("first", [8, 4, 3, 3], () => 2 * normal()),
        floatInitializer("second", [8, 8, 3, 3], normal),
        floatInitializer("low", [], () => low),
        floatInitializer("high", [], () => high),
      ],
    });
    await writeFloatsNpz(folder.path, "x", { shape: [8, ...shape], values: draw(8 * 576) });
    const { file } = await compressFor("cpu", { model, folder: folder.path });
    const sqnrDb = await measureSqnrDb(model, file);
    assert.ok(sqnrDb > 25, `${sqnrDb} dB`);
  });
}

test("what is for another runtime is chosen by what it loses, and never timed", async () => {
  await using folder = await makeFolder();
  const model = await writeNetwork(folder.path);
  const candidates: CandidateRunner = {
    budgetSeconds: 20,
    time: () => Promise.reject(new Error("It was timed")),
    measureSqnrDb: async (path) => {
      const { operators } = await lint("tensorrt", path);
      return operators === 4 ? 15 : 40;
    },
  };
  const { report } = await compressFor("tensorrt", { model, folder: folder.path, candidates });
  assert.equal(report.restoredAtLoad.length, 1);
  assert.deepEqual(report.halved, []);
  assert.equal(report.qdq?.operators, 3);
});
