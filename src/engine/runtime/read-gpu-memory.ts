import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Time for an answer of NVIDIA's tool, ms. */
const timeoutMs = 5000;

/**
 * Memory of all GPUs of the machine or pod that programs have, bytes, in steps of 1 MiB;
 * undefined where NVIDIA's tool is not there or does not say it, as of some virtual GPUs.
 */
export async function readUsedGpuMemory(): Promise<number | undefined> {
  const args = ["--query-gpu=memory.used", "--format=csv,noheader,nounits"];
  try {
    const { stdout } = await run("nvidia-smi", args, { timeout: timeoutMs });
    const bytes =
      stdout
        .trim()
        .split("\n")
        .reduce((sum, line) => sum + Number(line), 0) *
      2 ** 20;
    return Number.isNaN(bytes) ? undefined : bytes;
  } catch {
    return undefined;
  }
}
