import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import { createCandidateRunner } from "../src/engine/candidate-runner.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import { contribTarget } from "../test/engine/quantize/compress.ts";
import {
  floatInitializer,
  integerAttribute,
  node,
  tensorInfo,
  writeTinyModel,
} from "../test/support/tiny-model.ts";
import { runPythonFile } from "../test/support/python.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * Latency of DynamicQuantizeLSTM relative to LSTM, timed in pairs, beside that of what ONNX
 * Runtime's own quantizer makes.
 */
const steps = 32;
const latencyBudgetSeconds = 30;
const sizes = [
  { hidden: 128, batch: 1 },
  { hidden: 256, batch: 1 },
  { hidden: 512, batch: 1 },
  { hidden: 512, batch: 8 },
] as const;
/** Least hidden sizes at which the quantized LSTM must be faster. */
const leastHidden = 512;
const quiet = { signal: new AbortController().signal, onProgress: () => {}, log: () => {} };

const rows: BenchRow[] = [];
for (const one of sizes) rows.push(...(await measureSize(one)));
await reportBench("lstm", rows);

async function writeLstmModel(path: string, { hidden, batch }: (typeof sizes)[number]) {
  const uniform = (seed: number) => (index: number) =>
    Math.sin(seed + index * 0.37 + (index % 89) * (index % 7)) / Math.sqrt(hidden);
  await writeTinyModel(path, {
    input: [tensorInfo("x", [steps, batch, hidden])],
    output: [tensorInfo("y", [steps, 1, batch, hidden])],
    initializer: [
      floatInitializer("w", [1, 4 * hidden, hidden], uniform(1)),
      floatInitializer("r", [1, 4 * hidden, hidden], uniform(2)),
      floatInitializer("b", [1, 8 * hidden], uniform(3)),
    ],
    node: [node("LSTM", ["x", "w", "r", "b"], ["y"], [integerAttribute("hidden_size", hidden)])],
  });
}

async function measureSize(one: (typeof sizes)[number]): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), "lstm-"));
  try {
    const originalPath = join(folder, "original.onnx");
    await writeLstmModel(originalPath, one);
    await compressModel(originalPath, {
      ...quiet,
      kind: "quantize",
      recipe: resolveRecipe({ scheme: "int8-dynamic", operators: "contrib" }),
      target: contribTarget,
      outputDirectory: folder,
    });
    const runner = createCandidateRunner({
      ...quiet,
      originalPath,
      evaluation: { samples: 2, latencyBudgetSeconds },
      executionProvider: "cpu",
      instructionSets: undefined,
    });
    const peerPath = join(folder, "peer.onnx");
    await runPythonFile("../../bench/latency/quantize_defaults.py", [originalPath, peerPath]);
    const timing = { share: 1, isDecided: () => false };
    const resultPath = join(folder, "model.onnx");
    const ours = await runner.time(resultPath, timing);
    const peer = await runner.time(peerPath, timing);
    if (ours === undefined) throw new Error("The result cannot be timed");
    const what = `LSTM of ${one.hidden} units, ${steps} steps of batch ${one.batch}`;
    const isLarge = one.hidden >= leastHidden;
    return [
      {
        what: `${what}: ratio ${ours.ratio.toFixed(2)}, its upper end`,
        unit: "",
        ours: ours.high,
        peer: peer?.ratio ?? null,
        bar: isLarge ? "< 1" : "none",
        met: isLarge ? ours.high < 1 : null,
      },
      {
        what: `${what}: SQNR`,
        unit: "dB",
        ours: (await runner.measureSqnrDb(resultPath)) ?? 0,
        peer: (await runner.measureSqnrDb(peerPath)) ?? null,
        bar: "none",
        met: null,
      },
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}
