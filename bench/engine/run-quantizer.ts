import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { pythonInterpreter } from "../../test/support/python.ts";
import { benchCache } from "./bench-cache.ts";
import { type Work, works } from "./works.ts";

const exec = promisify(execFile);

export const quantizerCost = z.object({ seconds: z.number(), peakBytes: z.number() });
/** Seconds of the call and most resident memory of its process. */
export type QuantizerCost = z.infer<typeof quantizerCost>;

export interface QuantizerRun {
  readonly model: string;
  /** Folder that is emptied first; the result is its `model.onnx`. */
  readonly output: string;
  readonly work: Work;
  /** `matrices`: only what the peer quantizes too. */
  readonly scope?: "all" | "matrices";
}

export async function runOurs(run: QuantizerRun): Promise<QuantizerCost> {
  const { model, output, work, scope = "all" } = run;
  await emptyFolder(output);
  const recipe = JSON.stringify({ ...works[work], evaluation: { level: "weights" } });
  const script = join(import.meta.dirname, "compress.ts");
  // As the thread of a worker's job has it.
  const options = ["--max-semi-space-size=2"];
  // As the image has it.
  const NODE_COMPILE_CACHE = join(benchCache, "compiled-modules");
  const { stdout } = await exec(
    process.execPath,
    [...options, script, model, output, recipe, scope],
    { env: { ...process.env, NODE_COMPILE_CACHE } },
  );
  return quantizerCost.parse(JSON.parse(stdout));
}

/** @throws Error where ONNX Runtime's quantizer fails; its last line says how */
export async function runPeer({ model, output, work }: QuantizerRun): Promise<QuantizerCost> {
  await emptyFolder(output);
  const script = join(import.meta.dirname, "peer.py");
  const { stdout } = await exec(pythonInterpreter, [
    script,
    model,
    join(output, "model.onnx"),
    work,
  ]);
  const [last = ""] = stdout.trim().split("\n").slice(-1);
  return quantizerCost.parse(JSON.parse(last));
}

async function emptyFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
}
