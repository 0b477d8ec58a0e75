import { execFile, type ExecFileOptions } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";

const exec = promisify(execFile);
const cost = z.object({ seconds: z.number(), cpuSeconds: z.number(), peakBytes: z.number() });

/** Converts a checkpoint in a process of its own, into `result` of a folder; gives what it cost. */
export async function convert(source: string, folder: string, work: readonly string[] = []) {
  const { stdout } = await runConvert(source, folder, work);
  process.stdout.write(`${source} ${work.join(" ")}: ${stdout}\n`);
  return cost.parse(JSON.parse(stdout));
}

/** @param work number of shares and index of one, for a share */
export async function runConvert(
  source: string,
  folder: string,
  work: readonly string[] = [],
  options: ExecFileOptions = {},
) {
  const script = join(import.meta.dirname, "convert.ts");
  // As the thread of a worker's job has it.
  const program = ["--max-semi-space-size=2", script];
  return exec(process.execPath, [...program, source, folder, ...work], {
    ...options,
    encoding: "utf8",
  });
}
