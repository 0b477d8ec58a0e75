import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { PartialRecipe } from "../../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../../src/contract/jobs/resolve-recipe.ts";
import type { Target } from "../../../src/contract/jobs/target.ts";
import type { CandidateRunner } from "../../../src/engine/candidate.ts";
import { compressModel } from "../../../src/engine/compress-model.ts";
import { TensorProto_DataType } from "../../../src/engine/onnx/onnx_pb.js";
import { openModel } from "../../../src/engine/onnx/open-model.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../../support/tiny-model.ts";
import { findRunnableSample, runModel } from "../../support/run-pipeline.ts";
import { fixedCandidates, measureSqnrDb } from "./candidates.ts";
import { contribTarget, makeFolder, weightNamed } from "./compress.ts";

const recipe = { scheme: "int8-dynamic", operators: "contrib" } as const;
const [batch, inputs, hidden] = [2, 48, 32];

interface LstmModel {
  readonly direction?: "forward" | "reverse" | "bidirectional";
  /** Inputs sequence_lens, initial_h, initial_c and P, all of them or none. */
  readonly hasStates?: boolean;
  readonly attributes?: Parameters<typeof node>[3];
  /** Whether the recurrent weight has a value that is not finite. */
  readonly isBroken?: boolean;
}

/** Noise of a normal distribution's size, the same in every run. */
function noise(seed: number, size: number): (index: number) => number {
  return (index) => size * Math.sin(seed + index * index * 0.37 + index);
}

async function writeLstm(path: string, model: LstmModel): Promise<void> {
  const { direction = "forward", hasStates = false, attributes = [], isBroken } = model;
  const directions = direction === "bidirectional" ? 2 : 1;
  const rows = 4 * hidden;
  const lengths = {
    name: "lengths",
    dims: [BigInt(batch)],
    dataType: TensorProto_DataType.INT32,
    rawData: new Uint8Array(Int32Array.of(7, 4).buffer),
  };
  const state = [directions, batch, hidden];
  const states = [
    lengths,
    floatInitializer("h", state, noise(4, 0.5)),
    floatInitializer("c", state, noise(5, 0.5)),
    floatInitializer("p", [directions, 3 * hidden], noise(6, 0.3)),
  ];
  await writeTinyModel(path, {
    input: [tensorInfo("x", [7, batch, inputs])],
    output: [
      tensorInfo("y", [7, directions, batch, hidden]),
      tensorInfo("y_h", state),
      tensorInfo("y_c", state),
    ],
    initializer: [
      floatInitializer("w", [directions, rows, inputs], noise(1, 0.3)),
      floatInitializer("r", [directions, rows, hidden], (index) =>
        isBroken === true && index === 5 ? Infinity : noise(2, 0.3)(index),
      ),
      floatInitializer("b", [directions, 2 * rows], noise(3, 0.2)),
      ...(hasStates ? states : []),
    ],
    node: [
      node(
        "LSTM",
        ["x", "w", "r", "b", ...(hasStates ? ["lengths", "h", "c", "p"] : [])],
        ["y", "y_h", "y_c"],
        [
          integerAttribute("hidden_size", hidden),
          { name: "direction", type: 3, s: new TextEncoder().encode(direction) },
          ...attributes,
        ],
      ),
    ],
  });
}

interface Quantizing {
  readonly changes?: PartialRecipe;
  readonly target?: Partial<Target>;
  readonly candidates?: CandidateRunner;
}

async function quantizeLstm(t: TestContext, model: LstmModel, options: Quantizing = {}) {
  const folder = await makeFolder();
  t.after(() => folder[Symbol.asyncDispose]());
  const originalPath = join(folder.path, "original.onnx");
  await writeLstm(originalPath, model);
  const report = await compressModel(originalPath, {
    kind: "quantize",
    recipe: resolveRecipe(recipe, options.changes ?? {}),
    target: { ...contribTarget, ...options.target },
    outputDirectory: folder.path,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
    candidates: options.candidates,
  });
  const path = join(folder.path, "model.onnx");
  const operators = await readOperators(path);
  return { report, operators, path, measure: () => measureSqnrDb(originalPath, path) };
}

/** Which of the two operators a model has. */
async function readOperators(path: string): Promise<string[]> {
  const { proto } = await openModel(path, 2 ** 20);
  const operators = proto.graph?.node.map(({ opType }) => opType) ?? [];
  return operators.filter((operator) => operator.endsWith("LSTM"));
}

const cases: readonly [string, LstmModel, Quantizing, number][] = [
  ["a forward LSTM", {}, {}, 30],
  ["a reverse LSTM", { direction: "reverse" }, {}, 30],
  ["a bidirectional LSTM", { direction: "bidirectional" }, {}, 30],
  [
    "a bidirectional LSTM with peepholes, lengths and initial states",
    { direction: "bidirectional", hasStates: true },
    {},
    30,
  ],
  [
    "a bidirectional LSTM with a scale for each direction",
    { direction: "bidirectional" },
    { changes: { granularity: "tensor" } },
    28,
  ],
  ["an LSTM by an asymmetric recipe", {}, { changes: { symmetric: false } }, 30],
  ["an LSTM in 7 bits", {}, { changes: { reduceRange: true } }, 25],
  [
    "a bidirectional LSTM in uint8",
    { direction: "bidirectional" },
    { target: { instructionSets: ["avx2"] }, candidates: fixedCandidates("faster") },
    30,
  ],
];

for (const [name, model, options, leastSqnrDb] of cases) {
  test(`int8-dynamic quantizes ${name}`, async (t) => {
    const { report, operators, measure } = await quantizeLstm(t, model, options);
    assert.deepEqual(operators, ["DynamicQuantizeLSTM"]);
    assert.match(weightNamed(report, "r").form ?? "", /DynamicQuantizeLSTM$/);
    assert.deepEqual(report.warnings, []);
    const sqnrDb = await measure();
    t.diagnostic(`${sqnrDb.toFixed(1)} dB`);
    assert.ok(sqnrDb >= leastSqnrDb, `${sqnrDb} dB`);
  });
}

const lossy = fixedCandidates("faster", async (path) => {
  const [operator] = await readOperators(path);
  return operator === "LSTM" ? 40 : 33;
});

for (const [name, candidates] of [
  ["slower", fixedCandidates("slower")],
  ["less accurate by 7 dB", lossy],
] as const) {
  test(`both weights of an LSTM that is ${name} are restored at load`, async (t) => {
    const { report, operators, measure } = await quantizeLstm(t, {}, { candidates });
    assert.deepEqual(operators, ["LSTM"]);
    for (const weight of ["w", "r"]) {
      assert.match(weightNamed(report, weight).form ?? "", /restored at load$/);
    }
    assert.ok((await measure()) >= 30);
  });
}

const unquantized: readonly [string, LstmModel, Quantizing][] = [
  ["one of its weights is excluded", {}, { changes: { exclude: ["r"] } }],
  ["one of its weights is not finite", { isBroken: true }, {}],
  ["the recipe has standard operators", {}, { changes: { operators: "standard" } }],
  ["the target is a GPU", {}, { target: { executionProvider: "cuda" } }],
  ["its batch comes first", { attributes: [integerAttribute("layout", 1)] }, {}],
];

for (const [name, model, { changes, target }] of unquantized) {
  test(`an LSTM stays one where ${name}`, async (t) => {
    const options = {
      changes: { fallback: "int8-weight" as const, ...changes },
      ...(target && { target }),
    };
    const { report, operators } = await quantizeLstm(t, model, options);
    assert.deepEqual(operators, ["LSTM"]);
    assert.match(weightNamed(report, "w").form ?? "", /^int8 .*restored at load$/);
  });
}

test("the other weight of an LSTM is stored anew where one turns out not to be finite", async (t) => {
  const options = { changes: { fallback: "int8-weight" } } as const;
  const { path } = await quantizeLstm(t, { direction: "bidirectional", isBroken: true }, options);
  const sample = await findRunnableSample(path);
  const [output] = await runModel(path, { sample, optimize: true });
  assert.deepEqual(output?.shape, [7, 2, batch, hidden]);
});
