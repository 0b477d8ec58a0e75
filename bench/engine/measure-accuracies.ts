import { execFile } from "node:child_process";
import { mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { errorMessage } from "../../src/log/error-message.ts";
import { pythonInterpreter } from "../../test/support/python.ts";
import { minilmData, realModel, type RealModelName } from "../../test/support/real-models.ts";
import type { BenchRow } from "../result.ts";
import { benchCache } from "./bench-cache.ts";
import { runOurs, runPeer } from "./run-quantizer.ts";
import { everyWork, type Work } from "./works.ts";

const exec = promisify(execFile);

/** What ours must reach by itself where the peer fails. */
interface Limit {
  readonly leastSqnrDb: number;
  readonly mostMegabytes: number;
}

interface AccuracyRun {
  readonly model: RealModelName;
  /** Samples of the model; undefined for images that image_samples.py draws. */
  readonly data: string | undefined;
  readonly limits: Readonly<Record<Work, Limit>>;
}

const accuracyRuns: readonly AccuracyRun[] = [
  {
    model: "minilm",
    data: minilmData,
    limits: {
      int4: { leastSqnrDb: 12, mostMegabytes: 55 },
      int8: { leastSqnrDb: 32, mostMegabytes: 61 },
      dynamic: { leastSqnrDb: 19, mostMegabytes: 59 },
      "dynamic-reduced": { leastSqnrDb: 17, mostMegabytes: 59 },
    },
  },
  {
    model: "ocr-recognition",
    data: undefined,
    limits: {
      int4: { leastSqnrDb: 22, mostMegabytes: 7.5 },
      int8: { leastSqnrDb: 39, mostMegabytes: 8.1 },
      dynamic: { leastSqnrDb: 32, mostMegabytes: 7.9 },
      "dynamic-reduced": { leastSqnrDb: 28, mostMegabytes: 7.9 },
    },
  },
  {
    model: "ocr-recognition-v6",
    data: undefined,
    limits: {
      int4: { leastSqnrDb: 18, mostMegabytes: 13.2 },
      int8: { leastSqnrDb: 38, mostMegabytes: 14.5 },
      dynamic: { leastSqnrDb: 31, mostMegabytes: 14 },
      "dynamic-reduced": { leastSqnrDb: 28, mostMegabytes: 14 },
    },
  },
];

interface AccuracyCase {
  readonly model: RealModelName;
  readonly work: Work;
  readonly limit: Limit;
  readonly samples: string;
  readonly folder: string;
}

const accuracy = z.object({ sqnrDb: z.number(), bytes: z.int() });
type Accuracy = z.infer<typeof accuracy>;

/** SQNR of outputs and size beside ONNX Runtime's quantizers, which quantize the same weights. */
export async function measureAccuracies(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const { model, data, limits } of accuracyRuns) {
    const folder = join(benchCache, "accuracy", model);
    await mkdir(folder, { recursive: true });
    const samples = data ?? (await drawImages(model, folder));
    for (const work of everyWork) {
      const limit = limits[work];
      rows.push(...(await compareWork({ model, work, limit, samples, folder })));
    }
    await rm(folder, { recursive: true });
  }
  return rows;
}

async function drawImages(model: RealModelName, folder: string): Promise<string> {
  const samples = join(folder, "data.npz");
  const script = join(import.meta.dirname, "image_samples.py");
  await exec(pythonInterpreter, [script, realModel(model), samples]);
  return samples;
}

async function compareWork(each: AccuracyCase): Promise<BenchRow[]> {
  const { model, work, folder } = each;
  const output = join(folder, "ours");
  await runOurs({ model: realModel(model), output, work, scope: "matrices" });
  const ours = await measureAccuracy(each, output);
  const peer = await measurePeer(each);
  const what = `${work} of ${model}`;
  if (typeof peer !== "string") return comparedRows(what, ours, peer);
  process.stdout.write(`${what}: peer failed: ${peer}\n`);
  return limitedRows(what, ours, each.limit);
}

/** Figures of the peer's result, or why it has none that count. */
async function measurePeer(each: AccuracyCase): Promise<Accuracy | string> {
  const { model, work, folder } = each;
  const output = join(folder, "peer");
  try {
    await runPeer({ model: realModel(model), output, work });
    const figures = await measureAccuracy(each, output);
    const { size } = await stat(realModel(model));
    return figures.bytes < size * 0.99 ? figures : "it left the model as it was";
  } catch (error) {
    return errorMessage(error).trim().split("\n").at(-1) ?? "";
  }
}

async function measureAccuracy(
  { model, samples }: AccuracyCase,
  folder: string,
): Promise<Accuracy> {
  const script = join(import.meta.dirname, "compare.py");
  const result = join(folder, "model.onnx");
  const { stdout } = await exec(pythonInterpreter, [script, realModel(model), samples, result]);
  return accuracy.parse(JSON.parse(stdout));
}

function comparedRows(what: string, ours: Accuracy, peer: Accuracy): BenchRow[] {
  return [
    {
      what: `${what}: SQNR`,
      unit: "dB",
      ours: ours.sqnrDb,
      peer: peer.sqnrDb,
      bar: "ours >= peer - 0.05",
      met: ours.sqnrDb >= peer.sqnrDb - 0.05,
    },
    {
      what: `${what}: size`,
      unit: "MB",
      ours: ours.bytes / 1e6,
      peer: peer.bytes / 1e6,
      bar: "ours <= peer * 1.01",
      met: ours.bytes <= peer.bytes * 1.01,
    },
  ];
}

function limitedRows(
  what: string,
  ours: Accuracy,
  { leastSqnrDb, mostMegabytes }: Limit,
): BenchRow[] {
  return [
    {
      what: `${what}: SQNR`,
      unit: "dB",
      ours: ours.sqnrDb,
      peer: null,
      bar: `peer failed; ours >= ${leastSqnrDb}`,
      met: ours.sqnrDb >= leastSqnrDb,
    },
    {
      what: `${what}: size`,
      unit: "MB",
      ours: ours.bytes / 1e6,
      peer: null,
      bar: `peer failed; ours <= ${mostMegabytes}`,
      met: ours.bytes / 1e6 <= mostMegabytes,
    },
  ];
}
