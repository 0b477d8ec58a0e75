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
import type { Work } from "./works.ts";

const exec = promisify(execFile);

interface AccuracyRun {
  readonly model: RealModelName;
  /** Samples of the model; undefined for images that image_samples.py draws. */
  readonly data: string | undefined;
  readonly works: readonly Work[];
}

const everyWork = ["int4", "int8", "dynamic", "dynamic-reduced"] as const;
const accuracyRuns: readonly AccuracyRun[] = [
  { model: "minilm", data: minilmData, works: everyWork },
  { model: "ocr-recognition", data: undefined, works: everyWork },
  { model: "ocr-recognition-v6", data: undefined, works: everyWork },
  { model: "page-orientation", data: undefined, works: ["int8", "dynamic"] },
];

/** What ours must reach by itself where the peer fails: dB, and the share of the original's bytes. */
const limits: Readonly<Record<Work, { leastSqnrDb: number; mostShare: number }>> = {
  int4: { leastSqnrDb: 10, mostShare: 0.8 },
  int8: { leastSqnrDb: 30, mostShare: 0.85 },
  dynamic: { leastSqnrDb: 15, mostShare: 0.85 },
  "dynamic-reduced": { leastSqnrDb: 15, mostShare: 0.85 },
};

interface AccuracyCase {
  readonly model: RealModelName;
  readonly work: Work;
  readonly samples: string;
  readonly folder: string;
}

const accuracy = z.object({ sqnrDb: z.number(), bytes: z.int() });
type Accuracy = z.infer<typeof accuracy>;

/** SQNR of outputs and size beside ONNX Runtime's quantizers, which quantize the same weights. */
export async function measureAccuracies(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const { model, data, works } of accuracyRuns) {
    const folder = join(benchCache, "accuracy", model);
    await mkdir(folder, { recursive: true });
    const samples = data ?? (await drawImages(model, folder));
    for (const work of works) rows.push(...(await compareWork({ model, work, samples, folder })));
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
  const { size } = await stat(realModel(model));
  return limitedRows(what, { ours, work, size });
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
  { ours, work, size }: { ours: Accuracy; work: Work; size: number },
): BenchRow[] {
  const { leastSqnrDb, mostShare } = limits[work];
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
      bar: `peer failed; ours <= ${mostShare} of the original`,
      met: ours.bytes <= mostShare * size,
    },
  ];
}
