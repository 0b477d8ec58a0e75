import { spawnSync } from "node:child_process";
import { constants } from "node:os";
import path from "node:path";
import { findCommand } from "./cluster/programs.ts";

const source = path.join(import.meta.dirname, "failing-calls.c");

export interface Failure {
  /** Of libc: `pwrite`, `ftruncate`, `rename`, `fsync`, `fdatasync`. */
  readonly calls: readonly string[];
  /** Where it is left out, the process is killed. */
  readonly error?: "EIO" | "ENOSPC";
  /** Number of the first call that fails, from 1, and of calls from one to the next. */
  readonly first: number;
  readonly step?: number;
}

/**
 * Builds a library that lets calls of a process fail; gives the variables with which they do.
 * Undefined where there is no compiler, or another system than Linux.
 */
export async function buildFailingCalls(
  folder: string,
): Promise<((failure: Failure) => Record<string, string>) | undefined> {
  const compiler = await findCommand("cc");
  if (compiler === undefined || process.platform !== "linux") return undefined;
  const library = path.join(folder, "failing-calls.so");
  const { status, stderr } = spawnSync(
    compiler,
    ["-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`The library was not built: ${stderr}`);
  return ({ calls, error, first, step = 1_000_000 }) => ({
    LD_PRELOAD: library,
    FAILING_CALLS: calls.join(","),
    FAILING_ERROR: String(error === undefined ? 0 : constants.errno[error]),
    FAILING_FIRST: String(first),
    FAILING_STEP: String(step),
  });
}
