import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Evaluation, PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import type { Telemetry } from "../../src/contract/jobs/telemetry.ts";
import type { CompressionReport } from "../../src/engine/compression-report.ts";
import { evaluateModels } from "../../src/engine/evaluate-models.ts";
import { pythonMissing, runPythonFile } from "../support/python.ts";
import { openModel } from "../../src/engine/onnx/open-model.ts";
import { compress, weightNamed } from "./quantize/compress.ts";

const variants = {
  untied: [],
  tied: ["tied"],
  "tied with normalized queries": ["tied", "normalized"],
} as const;
type Variant = keyof typeof variants;

let folder = "";
before(async () => {
  if (pythonMissing !== false) return;
  folder = await mkdtemp(join(tmpdir(), "language-models-"));
  for (const [name, options] of Object.entries(variants)) {
    await runPythonFile("build_language_model.py", [join(folder, `${name}.onnx`), ...options]);
  }
});
after(async () => {
  if (folder !== "") await rm(folder, { recursive: true });
});

const int4: PartialRecipe = { scheme: "int4-weight", operators: "contrib" };

interface Result {
  readonly originalPath: string;
  readonly resultPath: string;
  readonly report: CompressionReport;
}

async function compressVariant(name: Variant, recipe: PartialRecipe): Promise<Result> {
  const originalPath = join(folder, `${name}.onnx`);
  const directory = await mkdtemp(join(folder, "result-"));
  const report = await compress(originalPath, directory, recipe);
  return { originalPath, resultPath: join(directory, "model.onnx"), report };
}

/** Worst SQNR on generated samples, dB, and what the log says of the first. */
async function evaluate(
  { originalPath, resultPath }: Result,
  options: {
    availableBytes?: number;
    dataPath?: string;
    evaluation?: Pick<Evaluation, "samples" | "latencyBudgetSeconds" | "minCosine">;
  } = {},
): Promise<Pick<Telemetry, "accuracy" | "latency"> & { sqnrDb: number; log: string }> {
  const lines: string[] = [];
  const known: Pick<Telemetry, "accuracy" | "latency"> = {};
  const scratchDirectory = await mkdtemp(join(folder, "scratch-"));
  await evaluateModels({
    originalPath,
    resultPath,
    evaluation: { samples: 2, latencyBudgetSeconds: 0, minCosine: -1 },
    executionProvider: "cpu",
    threads: 1,
    scratchDirectory,
    signal: new AbortController().signal,
    onProgress: () => {},
    onMeasured: (figures) => Object.assign(known, figures),
    log: (line) => lines.push(line),
    ...options,
  });
  return { ...known, sqnrDb: known.accuracy?.sqnrDb ?? NaN, log: lines.join("\n") };
}

for (const name of ["untied", "tied", "tied with normalized queries"] as const) {
  test(`a ${name} decoder is evaluated on its first tokens`, { skip: pythonMissing }, async () => {
    const { sqnrDb, log } = await evaluate(await compressVariant(name, int4));
    assert.match(log, /"past_key_values\.1\.value": .*; 1 × 2 × 0 × 32,/);
    assert.match(log, /the first: 32 tokens$/m);
    assert.ok(sqnrDb > 8, `${sqnrDb} dB`);
  });
}

test("a decoder that is run in stages is evaluated too", { skip: pythonMissing }, async () => {
  const result = await compressVariant("untied", int4);
  const availableBytes = Math.ceil((128 * 1024 ** 2 + 2 * 200_000) / 0.75);
  const { sqnrDb, log } = await evaluate(result, { availableBytes });
  assert.match(log, /original does not fit into memory and is run in \d stages/);
  assert.match(log, /"past_key_values\.0\.key": .*; 1 × 2 × 0 × 32,/);
  assert.ok(sqnrDb > 8, `${sqnrDb} dB`);
});

/** A file of the caller's, in the folder of the models. */
async function writeData(content: string): Promise<string> {
  const file = join(await mkdtemp(join(folder, "data-")), "data");
  await writeFile(file, content);
  return file;
}

test("a decoder is compared on the caller's tokens", { skip: pythonMissing }, async () => {
  const result = await compressVariant("untied", int4);
  const dataPath = await writeData("[1, 2, 3, 4, 5, 6]\n[7, 8, 9, 10]\n[11, 12]\n");
  const { accuracy } = await evaluate(result, { dataPath });
  assert.equal(accuracy?.data, "caller");
  assert.equal(accuracy.samples, 2);
  assert.deepEqual(
    accuracy.outputs.map(({ name }) => name),
    ["logits"],
  );
  const { language } = accuracy;
  assert(language);
  assert.deepEqual([language.tokens, language.windowTokens], [8, 6]);
  assert.ok(language.klDivergence > 0 && language.perplexityRatio > 0, JSON.stringify(language));
  const original = { ...result, resultPath: result.originalPath };
  const same = (await evaluate(original, { dataPath })).accuracy?.language;
  assert.equal(same?.perplexityRatio, 1);
  assert.equal(same.klDivergence, 0);
  assert.equal(same.originalPerplexity, language.originalPerplexity);
  const availableBytes = Math.ceil((128 * 1024 ** 2 + 2 * 200_000) / 0.75);
  const staged = (await evaluate(result, { dataPath, availableBytes })).accuracy?.language;
  assert(staged);
  const difference = staged.resultPerplexity / language.resultPerplexity - 1;
  assert.ok(Math.abs(difference) < 1e-3, String(difference));
});

test(
  "a decoder is timed on a prompt and on a token after it",
  { skip: pythonMissing },
  async () => {
    const result = await compressVariant("untied", int4);
    const dataPath = await writeData("[1, 2, 3, 4, 5, 6]\n[7, 8]\n");
    const { latency } = await evaluate(result, {
      dataPath,
      evaluation: { samples: 2, latencyBudgetSeconds: 0.1, minCosine: -1 },
    });
    assert.deepEqual(
      latency?.shapes?.map(({ inputs }) => inputs),
      ["6 tokens", "1 token after 5", "2 tokens"],
    );
  },
);

test("text for a model without a tokenizer is refused", { skip: pythonMissing }, async () => {
  const result = await compressVariant("untied", int4);
  const dataPath = await writeData("Once upon a time\n");
  await assert.rejects(evaluate(result, { dataPath }), {
    code: "evaluation_data_invalid",
    message: /no tokenizer: give lines of JSON with "input_ids"/,
  });
});

/** Operators of a model that take an initializer, with its name and bytes. */
async function readGraph(path: string) {
  const { proto } = await openModel(path, 2 ** 30);
  assert(proto.graph);
  const { node: nodes, initializer } = proto.graph;
  const named = (opType: string) => nodes.filter((node) => node.opType === opType);
  return { nodes, named, initializers: initializer.map(({ name }) => name) };
}

const tiedRecipes: readonly PartialRecipe[] = [
  int4,
  { ...int4, symmetric: false },
  { ...int4, blockSize: 16 },
  { scheme: "int8-weight", granularity: "block", operators: "contrib" },
];
for (const recipe of tiedRecipes) {
  const name = JSON.stringify(recipe);
  test(
    `a tied embedding is gathered in the head's blocks: ${name}`,
    { skip: pythonMissing },
    async () => {
      const result = await compressVariant("tied", recipe);
      const { form } = weightNamed(result.report, "lm_head.MatMul.weight");
      assert.match(form ?? "", /^int[48] with a scale for each (16|32) (inputs|values)/);
      assert.doesNotMatch(form ?? "", /restored/);
      const { nodes, named, initializers } = await readGraph(result.resultPath);
      assert.equal(named("Transpose").length + named("BitShift").length, 0);
      const [gather] = named("GatherBlockQuantized");
      const head = named("MatMulNBits").find(({ name }) => name === "/lm_head/MatMul");
      assert(gather && head);
      assert.deepEqual(gather.input.slice(2), head.input.slice(2));
      const values = nodes.find(({ output }) => output[0] === gather.input[0]);
      assert.deepEqual(values?.input[0], head.input[1]);
      const stored = initializers.filter((each) => /^lm_head.*_(quantized|scale)/.test(each));
      assert.equal(stored.length, 2);
      const { sqnrDb } = await evaluate(result);
      assert.ok(sqnrDb > 8, `${sqnrDb} dB`);
    },
  );
}

test(
  "a tied embedding has the values of an untied one in the same blocks",
  { skip: pythonMissing },
  async () => {
    const direct = await compressVariant("tied", int4);
    const restored = await compressVariant("tied", {
      ...int4,
      dequantize: "load",
      operators: "standard",
    });
    const [contrib, standard] = [await evaluate(direct), await evaluate(restored)];
    assert.ok(
      Math.abs(contrib.sqnrDb - standard.sqnrDb) < 1.5,
      `${contrib.sqnrDb}, ${standard.sqnrDb} dB`,
    );
  },
);

test("a node past a Transpose is excluded by its name", { skip: pythonMissing }, async () => {
  const { report } = await compressVariant("tied", {
    ...int4,
    exclude: ["/model/embed_tokens/Gather", "/model/layers.*/mlp/down_proj/*"],
  });
  const { form, reason } = weightNamed(report, "lm_head.MatMul.weight");
  assert.equal(form, null);
  assert.equal(
    reason,
    'is excluded: "/model/embed_tokens/Gather" matches "/model/embed_tokens/Gather"',
  );
  assert.equal(weightNamed(report, "model.layers.1.mlp.down_proj.weight").form, null);
  assert.deepEqual(report.warnings, []);
});

test("patterns that match nothing are warned of", { skip: pythonMissing }, async () => {
  const exclude = ["lm_head*", "/model/layers.9/*", "lm_heat.MatMul.weight"];
  const { report } = await compressVariant("tied", { ...int4, exclude });
  assert.deepEqual(report.warnings, [
    {
      code: "patterns_unmatched",
      message:
        "No weight, and no node that takes one, matches the recipe's " +
        '"/model/layers.9/*", "lm_heat.MatMul.weight"',
    },
  ]);
});

const mixed: PartialRecipe = {
  ...int4,
  exclude: ["/model/layers.1/attn/o_proj/*"],
  overrides: [
    { match: "/model/layers.0/mlp/down_proj/*", scheme: "int4-weight" },
    { match: "/lm_head/MatMul", scheme: "int8-weight" },
    { match: "/model/layers.0/*", scheme: "int8-weight" },
    { match: "/model/layers.1/attn/*", scheme: "int8-weight" },
  ],
};

test(
  "overrides give weights other bits, the first match first",
  { skip: pythonMissing },
  async () => {
    const result = await compressVariant("tied", mixed);
    const bits = (name: string) =>
      /^int[48]/.exec(weightNamed(result.report, name).form ?? "")?.[0];
    assert.equal(bits("lm_head.MatMul.weight"), "int8");
    assert.equal(bits("model.layers.0.mlp.down_proj.weight"), "int4");
    assert.equal(bits("model.layers.0.mlp.up_proj.weight"), "int8");
    assert.equal(bits("model.layers.1.mlp.up_proj.weight"), "int4");
    assert.equal(bits("model.layers.1.attn.qkv_proj.weight"), "int8");
    assert.equal(bits("model.layers.1.attn.o_proj.weight"), undefined);
    assert.equal(
      weightNamed(result.report, "lm_head.MatMul.weight").reason,
      'is to be int8-weight: "/lm_head/MatMul" matches "/lm_head/MatMul"',
    );
    assert.deepEqual(result.report.warnings, []);
    const { named } = await readGraph(result.resultPath);
    assert.equal(named("MatMulNBits").length, 2 * 5 + 1 - 1);
    assert.equal(named("GatherBlockQuantized").length, 1);
    const plain = await compressVariant("tied", int4);
    const [better, worse] = [await evaluate(result), await evaluate(plain)];
    assert.ok(better.sqnrDb > worse.sqnrDb + 1, `${better.sqnrDb}, ${worse.sqnrDb} dB`);
  },
);

test(
  "overrides have blocks or channels as their schemes can",
  { skip: pythonMissing },
  async () => {
    const match = "/lm_head/*";
    const cases: [PartialRecipe, RegExp][] = [
      [
        { scheme: "int8-weight", overrides: [{ match, scheme: "int4-weight" }] },
        /^int4 .* each 32/,
      ],
      [
        { ...int4, granularity: "block", overrides: [{ match, scheme: "int8-dynamic" }] },
        /^int8 with a scale for each output, inputs in uint8$/,
      ],
      [{ scheme: "fp16", overrides: [{ match, scheme: "int8-weight" }] }, /^int8 .* axis 1/],
    ];
    for (const [recipe, form] of cases) {
      const result = await compressVariant("untied", { operators: "contrib", ...recipe });
      assert.match(weightNamed(result.report, "lm_head.MatMul.weight").form ?? "", form);
      const other = weightNamed(result.report, "model.layers.0.mlp.up_proj.weight");
      assert.equal(other.reason, null);
      assert.notEqual(other.form, null);
      const { sqnrDb } = await evaluate(result);
      assert.ok(sqnrDb > 8, `${sqnrDb} dB`);
    }
  },
);

test("an override that matches nothing is warned of", { skip: pythonMissing }, async () => {
  const overrides = [{ match: "/lm_heat/*", scheme: "int8-weight" as const }];
  const { report } = await compressVariant("untied", { ...int4, overrides });
  assert.deepEqual(
    report.warnings.map(({ code }) => code),
    ["patterns_unmatched"],
  );
});
