import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { CandidateRatio, CandidateRunner } from "../../src/engine/candidate.ts";
import { compressModel } from "../../src/engine/compress-model.ts";
import { openModel } from "../../src/engine/onnx/open-model.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { contribTarget, makeFolder, weightNamed } from "./quantize/compress.ts";

const [slower, faster]: CandidateRatio[] = [
  { ratio: 1.2, low: 1.18, high: 1.22, secondsPerRound: 0.1 },
  { ratio: 0.6, low: 0.58, high: 0.62, secondsPerRound: 0.1 },
];

interface Operators {
  readonly small: boolean;
  readonly large: boolean;
}

const budgetSeconds = 20;

/** Runs nothing: times follow from the operators that a candidate has. */
function scriptedRunner(
  ratio: (operators: Operators) => CandidateRatio | undefined,
  sqnrDb: (operators: Operators) => number = () => 40,
): CandidateRunner {
  return {
    budgetSeconds,
    time: async (path) => ratio(await readOperators(path)),
    measureSqnrDb: async (path) => sqnrDb(await readOperators(path)),
  };
}

async function readOperators(path: string): Promise<Operators> {
  const { proto } = await openModel(path, 2 ** 30);
  const takes = (name: string) =>
    proto.graph?.node.some(
      ({ opType, input }) =>
        ["MatMulInteger", "MatMulNBits"].includes(opType) &&
        input[1]?.startsWith(`${name}_quantized`),
    ) ?? false;
  return { small: takes("small"), large: takes("large") };
}

async function compressTwoProducts(
  t: TestContext,
  recipe: PartialRecipe,
  options: {
    candidates?: CandidateRunner;
    instructionSets?: ("avx2" | "avx512_vnni")[];
    /** Whether a hard swish of four operators follows. */
    hasHardSwish?: boolean;
  },
) {
  const { instructionSets, hasHardSwish = false } = options;
  const folder = await makeFolder();
  t.after(() => folder[Symbol.asyncDispose]());
  const path = join(folder.path, "original.onnx");
  await writeTinyModel(path, {
    input: [tensorInfo("x", ["n", 64])],
    output: [tensorInfo("y", ["n", 32])],
    initializer: [
      floatInitializer("large", [64, 128], (index) => Math.sin(index * index)),
      floatInitializer("small", [128, 32], (index) => Math.cos(index * index)),
      floatInitializer("bias", [32], (index) => index),
      ...(hasHardSwish ? numbers : []),
    ],
    node: [
      node("MatMul", ["x", "large"], ["h"]),
      node("MatMul", ["h", "small"], ["s"]),
      node("Add", ["s", "bias"], [hasHardSwish ? "b" : "y"]),
      ...(hasHardSwish ? hardSwish : []),
    ],
  });
  const lines: string[] = [];
  const report = await compressModel(path, {
    kind: "compress",
    recipe: resolveRecipe(recipe),
    target: { ...contribTarget, ...(instructionSets && { instructionSets }) },
    outputDirectory: folder.path,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: (line) => lines.push(line),
    candidates: options.candidates,
  });
  assert.deepEqual((await readdir(folder.path)).toSorted(), ["model.onnx", "original.onnx"]);
  const operators = await readOperators(join(folder.path, "model.onnx"));
  return { report, operators, lines };
}

const numbers = [0, 3, 6].map((number) => floatInitializer(`number ${number}`, [], () => number));
const hardSwish = [
  node("Add", ["b", "number 3"], ["shifted"]),
  node("Clip", ["shifted", "number 0", "number 6"], ["clipped"]),
  node("Mul", ["b", "clipped"], ["product"]),
  node("Div", ["product", "number 6"], ["y"]),
];

const dynamic: PartialRecipe = { scheme: "int8-dynamic" };

test("integers are dropped where only fused operators make a result faster", async (t) => {
  const candidates: CandidateRunner = {
    budgetSeconds,
    time: (_, { reference }) => Promise.resolve(reference === undefined ? faster : slower),
    measureSqnrDb: () => Promise.resolve(40),
  };
  const { operators } = await compressTwoProducts(t, dynamic, { candidates, hasHardSwish: true });
  assert.deepEqual(operators, { small: false, large: false });
});

test("quantized operators stay where the whole model is faster with them", async (t) => {
  const candidates = scriptedRunner(() => faster);
  const { operators, report } = await compressTwoProducts(t, dynamic, { candidates });
  assert.deepEqual(operators, { small: true, large: true });
  assert.deepEqual(report.warnings, []);
});

test("products that make the model slower get weights that are restored at load", async (t) => {
  const candidates = scriptedRunner(({ small }) => (small ? slower : faster));
  const { report, operators, lines } = await compressTwoProducts(t, dynamic, { candidates });
  assert.deepEqual(operators, { small: false, large: true });
  const { form, reason, error } = weightNamed(report, "small");
  assert.match(form ?? "", /^int8 .*restored at load$/);
  assert.match(reason ?? "", /is not faster as int8 .*\[128 × 32\]: ×1.20 \(1.18 to 1.22\)/);
  assert.ok(error !== null && error.sqnrDb > 30);
  assert.equal(weightNamed(report, "large").reason, null);
  assert.deepEqual(
    lines.filter((line) => line.startsWith("Unchanged")),
    ["Unchanged: 1 weight: it has fewer elements than minElements 256"],
  );
});

test("where no product is faster, every weight is restored at load", async (t) => {
  const candidates = scriptedRunner(() => slower);
  const { report, operators } = await compressTwoProducts(t, dynamic, { candidates });
  assert.deepEqual(operators, { small: false, large: false });
  assert.deepEqual(report.warnings, []);
  assert.match(
    report.choice ?? "",
    /^No weight has the recipe's own form; 2 have another one, such as int8 .*restored at load: "large" is not faster as int8/,
  );
  assert.ok(report.resultBytes < 0.45 * report.originalBytes);
});

test("regions for which the budget does not last are not timed", async (t) => {
  const slow = { ratio: 1.2, low: 1.18, high: 1.22, secondsPerRound: budgetSeconds / 4 };
  let timed = 0;
  const candidates = scriptedRunner(() => {
    timed += 1;
    return slow;
  });
  const { operators } = await compressTwoProducts(t, dynamic, { candidates });
  assert.deepEqual([timed, operators], [1, { small: false, large: false }]);
});

test("products that are faster alone and slower together leave the fastest", async (t) => {
  const candidates = scriptedRunner(({ small, large }) => {
    if (small && large) return slower;
    return small ? { ratio: 0.5, low: 0.4, high: 0.6, secondsPerRound: 0.1 } : faster;
  });
  const { operators } = await compressTwoProducts(t, dynamic, { candidates });
  assert.deepEqual(operators, { small: true, large: false });
});

test("products that round activations go where they cost more than a bit of accuracy", async (t) => {
  const recipe: PartialRecipe = { scheme: "int4-weight", operators: "contrib" };
  for (const [loss, expected] of [
    [5, true],
    [7, false],
  ] as const) {
    const candidates = scriptedRunner(
      () => faster,
      ({ small }) => (small ? 30 - loss : 30),
    );
    const { operators } = await compressTwoProducts(t, recipe, { candidates });
    assert.deepEqual(operators, { small: expected, large: expected });
  }
});

test("where all products stay, their accuracy is measured on the model that is written already", async (t) => {
  const timed: string[] = [];
  const measured: string[] = [];
  const candidates: CandidateRunner = {
    budgetSeconds,
    time: async (path) => {
      timed.push(path);
      return faster;
    },
    measureSqnrDb: async (path) => {
      measured.push(path);
      return 40;
    },
  };
  await compressTwoProducts(t, { scheme: "int4-weight", operators: "contrib" }, { candidates });
  assert.deepEqual(timed, measured.slice(0, 1));
  assert.equal(measured.length, 2);
});

test("without times, the instruction sets of the target decide", async (t) => {
  for (const [instructionSet, expected] of [
    ["avx2", false],
    ["avx512_vnni", true],
  ] as const) {
    const untimed = scriptedRunner(() => undefined);
    for (const candidates of [untimed, undefined]) {
      const options = { ...(candidates && { candidates }), instructionSets: [instructionSet] };
      const { operators } = await compressTwoProducts(t, dynamic, options);
      assert.deepEqual(operators, { small: expected, large: expected });
    }
  }
});
