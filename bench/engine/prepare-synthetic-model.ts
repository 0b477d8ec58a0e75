import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { exists } from "../../test/support/prepare-python.ts";
import { pythonInterpreter } from "../../test/support/python.ts";
import { benchCache } from "./bench-cache.ts";

const exec = promisify(execFile);

/** Layers of generate.py, and whether their weights lie in a file of their own. */
export const syntheticModels = {
  "1gb": { layers: 6, external: false },
  "3gb": { layers: 19, external: true },
  "10gb": { layers: 64, external: true },
} as const;

export type SyntheticModel = keyof typeof syntheticModels;

/** Makes a model of that size at its first use. @returns its path */
export async function prepareSyntheticModel(size: SyntheticModel): Promise<string> {
  const path = join(benchCache, size, "model.onnx");
  if (await exists(path)) return path;
  process.stdout.write(`Making the ${size} model\n`);
  await mkdir(join(benchCache, size), { recursive: true });
  const { layers, external } = syntheticModels[size];
  const script = join(import.meta.dirname, "generate.py");
  await exec(pythonInterpreter, [script, path, String(layers), external ? "1" : "0"]);
  return path;
}
