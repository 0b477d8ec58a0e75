import { spawn } from "node:child_process";
import { once } from "node:events";
import { comparableOutputs } from "../src/engine/evaluate/output-comparison.ts";
import { compareLatency } from "../src/engine/latency/compare-latency.ts";
import { ModelSession } from "../src/engine/runtime/model-session.ts";
import { runOnGeneratedSample } from "../src/engine/samples/generate-sample.ts";
import type { Sample } from "../src/engine/runtime/tensor-data.ts";
import { realModel, type RealModelName } from "../test/support/real-models.ts";
import { type BenchRow, reportBench } from "./result.ts";

/**
 * A model against itself beside a process that keeps a core busy: how many intervals contain 1.00,
 * and how many that are not reported as noisy go beyond 0.97 to 1.03.
 */
const trials = Number(process.argv[3] ?? 100);
const models = ["voice-v5", "ocr-recognition"] as const satisfies RealModelName[];
const budgetSeconds = 8;
const threads = 1;
const { signal } = new AbortController();

interface Trial {
  readonly low: number;
  readonly high: number;
  readonly isNoisy: boolean;
}

async function makeSample(path: string): Promise<Sample> {
  const options = { executionProvider: "cpu", threads, signal } as const;
  await using session = await ModelSession.open(path, options);
  const outputs = comparableOutputs(session).names;
  return (await runOnGeneratedSample(session, { outputs, signal })).sample;
}

async function measureSelf(path: string): Promise<Trial[]> {
  const sample = await makeSample(path);
  const measured: Trial[] = [];
  while (measured.length < trials) {
    const { latency, warnings } = await compareLatency({
      originalPath: path,
      resultPath: path,
      samples: [sample],
      executionProvider: "cpu",
      threads,
      budgetSeconds,
      signal,
      onProgress: () => undefined,
    });
    const { ratio, ratioLow: low = 0, ratioHigh: high = 0, sessions } = latency;
    measured.push({ low, high, isNoisy: warnings.length > 0 });
    const interval = `${ratio.toFixed(3)} (${low.toFixed(3)}-${high.toFixed(3)})`;
    process.stdout.write(`${measured.length}: ${interval}, ${sessions} sessions\n`);
  }
  return measured;
}

function summarizeTrials(model: string, measured: readonly Trial[]): BenchRow[] {
  const containing = measured.filter(({ low, high }) => low <= 1 && 1 <= high).length;
  const clear = measured.filter(({ isNoisy }) => !isNoisy);
  const far = clear.filter(({ low, high }) => low < 0.97 || high > 1.03).length;
  const least = Math.ceil(0.95 * measured.length);
  const widest = Math.max(0, ...clear.map(({ low, high }) => high - low));
  const noisy = measured.length - clear.length;
  const row = { unit: "trials", peer: null };
  return [
    {
      ...row,
      what: `${model}: of ${measured.length} intervals, contain 1.00`,
      ours: containing,
      bar: `>= ${least}`,
      met: containing >= least,
    },
    {
      ...row,
      what: `${model}: of ${clear.length} not noisy, beyond 0.97 to 1.03`,
      ours: far,
      bar: "<= 0",
      met: far === 0,
    },
    { ...row, what: `${model}: noisy`, ours: noisy, bar: "none", met: true },
    {
      ...row,
      unit: "ratio",
      what: `${model}: widest not noisy`,
      ours: widest,
      bar: "none",
      met: true,
    },
  ];
}

const busy = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
try {
  await once(busy, "spawn");
  const rows: BenchRow[] = [];
  for (const model of models)
    rows.push(...summarizeTrials(model, await measureSelf(realModel(model))));
  await reportBench("latency-self", rows);
} finally {
  busy.kill();
}
