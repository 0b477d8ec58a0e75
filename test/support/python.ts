import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { exists, pythonParts } from "./prepare-python.ts";

const exec = promisify(execFile);
const parts = await pythonParts();

/** False where Python is prepared, else the sentence to skip with: `test(name, { skip: pythonMissing }, …)`. */
export const pythonMissing: string | false =
  !(await exists(join(parts.interpreter, "..", "..", ".complete"))) &&
  "Python 3.11 or later with venv is needed: install it, then `npm test` prepares the packages";

export const pythonInterpreter = parts.interpreter;

/** Runs a Python program with onnx, onnxruntime and numpy; gives what it printed. */
export async function runPython(program: string, args: readonly string[] = []): Promise<string> {
  const { stdout } = await exec(parts.interpreter, ["-c", program, ...args], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** Runs a Python file of this folder; gives what it printed. */
export async function runPythonFile(file: string, args: readonly string[]): Promise<string> {
  const { stdout } = await exec(parts.interpreter, [join(import.meta.dirname, file), ...args]);
  return stdout;
}
