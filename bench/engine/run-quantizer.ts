import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { pythonInterpreter } from "../../test/support/python.ts";
import { benchCache } from "./bench-cache.ts";
import { type Work, works } from "./works.ts";

const exec = promisify(execFile);

export const quantizerCost = z.object({
  seconds: z.number(),
  peakBytes: z.number(),
  forms: z.record(z.string(), z.int()).optional(),
});
/** Seconds of the call and most resident memory of its process; of ours, how many weights have each form. */
export type QuantizerCost = z.infer<typeof quantizerCost>;

/** Most samples that are calibrated on. */
const maxSamples = 128;

interface QuantizerRun {
  readonly model: string;
  /** Folder that is emptied first; the result is its `model.onnx`. */
  readonly output: string;
  /** An `.npz` file; with it, roundings are fitted and ranges found. */
  readonly calibration?: string | undefined;
}

export interface OwnRun extends QuantizerRun {
  readonly work: Work;
  /** Without it only weights are read: compression alone. */
  readonly evaluation?: PartialRecipe["evaluation"];
  /** `matrices`: only what the peer quantizes too. */
  readonly scope?: "all" | "matrices";
}

export async function runOurs(run: OwnRun): Promise<QuantizerCost> {
  const { model, output, work, evaluation, scope = "all", calibration } = run;
  await emptyFolder(output);
  const script = join(import.meta.dirname, "compress.ts");
  // As the thread of a worker's job has it.
  const options = ["--max-semi-space-size=2", script];
  const data = calibration === undefined ? [] : [calibration];
  const recipe: PartialRecipe = {
    ...works[work],
    evaluation: evaluation ?? { level: "weights" },
    ...(calibration !== undefined && {
      calibration: { data: pathToFileURL(calibration).href, samples: maxSamples },
    }),
  };
  // As the image has it.
  const NODE_COMPILE_CACHE = join(benchCache, "compiled-modules");
  const { stdout } = await exec(
    process.execPath,
    [...options, model, output, JSON.stringify(recipe), scope, ...data],
    { env: { ...process.env, NODE_COMPILE_CACHE } },
  );
  return parseCost(stdout);
}

/** A Python script that quantizes by one of its works. */
interface Peer {
  readonly interpreter: string;
  readonly script: string;
}

const onnxRuntime: Peer = {
  interpreter: pythonInterpreter,
  script: join(import.meta.dirname, "peer.py"),
};

/**
 * Runs one of the works of a peer, by default ONNX Runtime's quantizer.
 * @throws Error where the peer fails; its last line says how
 */
export async function runPeer(
  work: string,
  { model, output, calibration }: QuantizerRun,
  { interpreter, script }: Peer = onnxRuntime,
): Promise<QuantizerCost> {
  await emptyFolder(output);
  const data = calibration === undefined ? [] : [calibration];
  const options = [script, model, join(output, "model.onnx"), work, ...data];
  return parseCost((await exec(interpreter, options)).stdout);
}

/** Of the last line: quantizers print what they do. */
function parseCost(stdout: string): QuantizerCost {
  return quantizerCost.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
}

async function emptyFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
}
