import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { PartialRecipe } from "../src/contract/jobs/recipe.ts";
import { resolveRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import type { CandidateRunner } from "../src/engine/candidate.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import { contribTarget } from "../test/engine/quantize/compress.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../test/support/tiny-model.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * Memory that the weights of each form take while a model runs on the CPU, and at most while it is
 * loaded, as multiples of the original's bytes.
 */
const layers = 8;
const size = 2048;

type Graph = Parameters<typeof writeTinyModel>[1];

/** Weights differ: the runtime keeps equal ones once. */
function weight(name: string, ...dims: number[]): ReturnType<typeof floatInitializer> {
  const seed = 3 + (name.codePointAt(name.length - 1) ?? 0);
  return floatInitializer(name, dims, (index) => ((index * seed) % 251) / 251 - (index % 97) / 97);
}

function products(operator: "MatMul" | "Gemm"): Graph {
  const attributes = operator === "Gemm" ? [integerAttribute("transB", 1)] : [];
  const names = Array.from({ length: layers }, (_, layer) => `w${layer}`);
  return {
    input: [tensorInfo("x0", [1, size])],
    output: [tensorInfo(`x${layers}`, [1, size])],
    initializer: names.map((name) => weight(name, size, size)),
    node: names.map((name, layer) =>
      node(operator, [`x${layer}`, name], [`x${layer + 1}`], attributes),
    ),
  };
}

const embedding: Graph = {
  input: [tensorInfo("ids", [1, 8], 7)],
  output: [tensorInfo("rows", [1, 8, size])],
  initializer: [weight("table", layers * size, size)],
  node: [node("Gather", ["table", "ids"], ["rows"])],
};

const lstm: Graph = {
  input: [tensorInfo("x", [8, 1, size])],
  output: [tensorInfo("y", [8, 1, 1, size])],
  initializer: [weight("w", 1, 4 * size, size), weight("r", 1, 4 * size, size)],
  node: [node("LSTM", ["x", "w", "r"], ["y"], [integerAttribute("hidden_size", size)])],
};

/** Makes every weight one that is restored at load. */
const slower: CandidateRunner = {
  budgetSeconds: 1,
  time: () => Promise.resolve({ ratio: 2, low: 1.9, high: 2.1, secondsPerRound: 0 }),
  measureSqnrDb: () => Promise.resolve(40),
};

interface Case {
  readonly graph: Graph;
  readonly recipe?: PartialRecipe;
  readonly candidates?: CandidateRunner;
}

const contrib = { operators: "contrib" } as const;
const cases: Readonly<Record<string, Case>> = {
  "products, original": { graph: products("MatMul") },
  "products, fp16": { graph: products("MatMul"), recipe: { scheme: "fp16" } },
  "products, int8 restored at load": {
    graph: products("MatMul"),
    recipe: { scheme: "int8-weight" },
    candidates: slower,
  },
  "products, int8 by DequantizeLinear with a product": {
    graph: products("MatMul"),
    recipe: { scheme: "int8-weight" },
  },
  "transposed products, int8 by DequantizeLinear": {
    graph: products("Gemm"),
    recipe: { scheme: "int8-weight", dequantize: "run" },
  },
  "products, int8-dynamic": { graph: products("MatMul"), recipe: { scheme: "int8-dynamic" } },
  "products, int8 blocks by MatMulNBits": {
    graph: products("MatMul"),
    recipe: { scheme: "int8-weight", granularity: "block", ...contrib },
  },
  "products, int4 blocks by MatMulNBits": {
    graph: products("MatMul"),
    recipe: { scheme: "int4-weight", ...contrib },
  },
  "products, int4 blocks by DequantizeLinear": {
    graph: products("MatMul"),
    recipe: { scheme: "int4-weight" },
  },
  "embedding, original": { graph: embedding },
  "embedding, int8 rows": { graph: embedding, recipe: { scheme: "int8-weight" } },
  "embedding, int4 by GatherBlockQuantized": {
    graph: embedding,
    recipe: { scheme: "int4-weight", ...contrib },
  },
  "LSTM, original": { graph: lstm },
  "LSTM, int8 restored at load": { graph: lstm, recipe: { scheme: "int8-weight" } },
  "LSTM, DynamicQuantizeLSTM": { graph: lstm, recipe: { scheme: "int8-dynamic", ...contrib } },
};

const memory = z.object({ peakBytes: z.number(), settledBytes: z.number() });

async function measureCase(what: string, { graph, recipe, candidates }: Case): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), "weight-memory-"));
  try {
    const original = join(folder, "original.onnx");
    const tiny = join(folder, "tiny.onnx");
    await writeTinyModel(original, graph);
    await writeTinyModel(tiny, {
      input: [tensorInfo("x", [1])],
      output: [tensorInfo("y", [1])],
      node: [node("Relu", ["x"], ["y"])],
    });
    let path = original;
    if (recipe !== undefined) {
      await compressModel(original, {
        kind: "quantize",
        recipe: resolveRecipe(recipe),
        target: contribTarget,
        outputDirectory: folder,
        signal: new AbortController().signal,
        onProgress: () => {},
        log: () => {},
        candidates,
      });
      path = join(folder, "model.onnx");
    }
    const program = join(import.meta.dirname, "weight-memory", "run-session.ts");
    const { stdout } = await promisify(execFile)(process.execPath, [program, tiny, path]);
    const { peakBytes, settledBytes } = memory.parse(JSON.parse(stdout));
    const originalBytes = layers * size * size * 4;
    process.stdout.write(`${what}: ${stdout}\n`);
    const row = { unit: "of the original's bytes", peer: null, bar: "none", met: null };
    return [
      { ...row, what: `${what}: while it runs`, ours: settledBytes / originalBytes },
      { ...row, what: `${what}: while it is loaded`, ours: peakBytes / originalBytes },
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}

const rows: BenchRow[] = [];
for (const [what, one] of Object.entries(cases)) rows.push(...(await measureCase(what, one)));
await reportBench("weight-memory", rows);
