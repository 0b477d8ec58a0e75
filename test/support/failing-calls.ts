import { spawnSync } from "node:child_process";
import { open, readFile, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import path from "node:path";
import { findCommand } from "./cluster/programs.ts";

/** As the library has it. */
const maxNames = 16;
const source = path.join(import.meta.dirname, "failing-calls.c");

export interface Failure {
  /** Names of those that the library knows, 16 at most. */
  readonly calls: readonly string[];
  /** Of several, each in its turn; where it is left out, the process is killed. */
  readonly error?: FailureCode | readonly FailureCode[];
  /**
   * Number of the first call that fails, from 1, and of calls from one to the next. Where each name
   * has its own step, it is counted alone.
   */
  readonly first: number;
  readonly step?: number | readonly number[];
  /** Calls for files elsewhere do not count. */
  readonly folder?: string;
  /** File of `makeFailureCounts()`; without it every process fails from its start. */
  readonly counts?: string;
}

type FailureCode = "EIO" | "ENOSPC";

/** How many calls still fail, and how many did of each name, shared with the processes. */
export async function makeFailureCounts(file: string, calls: readonly string[]) {
  await writeFile(file, Buffer.alloc(8 * (1 + maxNames)));
  return {
    allow: async (failures: number) => {
      await using handle = await open(file, "r+");
      await handle.write(BigInt64Array.of(BigInt(failures)), 0, 8, 0);
    },
    async read(): Promise<ReadonlyMap<string, number>> {
      const counts = await readFile(file);
      return new Map(calls.map((name, i) => [name, Number(counts.readBigInt64LE(8 * (i + 1)))]));
    },
  };
}

/**
 * Builds a library that lets calls of a process fail; gives the variables with which they do.
 * Undefined if there is no compiler, or another system than Linux.
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
  return ({ calls, error = [], first, step = 1_000_000, folder, counts }) => ({
    LD_PRELOAD: library,
    FAILING_CALLS: calls.join(),
    FAILING_ERROR:
      [error]
        .flat()
        .map((code) => constants.errno[code])
        .join() || "0",
    FAILING_FIRST: String(first),
    FAILING_STEP: [step].flat().join(),
    ...(folder !== undefined && { FAILING_FOLDER: folder }),
    ...(counts !== undefined && { FAILING_COUNTS: counts }),
  });
}
