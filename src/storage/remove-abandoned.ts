import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { statOrUndefined, systemErrorCode } from "./file-error.ts";
import { isPartialUpload } from "./partial-upload-path.ts";

/** A temporary file without a write for so long has no writer, on whatever machine it ran. */
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/** Removes temporary files whose writer has ended, and uploads that were not continued. */
export async function removeAbandoned(incoming: string): Promise<void> {
  for (const name of await readdir(incoming)) {
    const file = path.join(incoming, name);
    const stats = await statOrUndefined(file);
    const isOld = stats !== undefined && stats.mtimeMs < Date.now() - abandonedAfterMs;
    if (isOld || !(isPartialUpload(name) || mayHaveWriter(name))) await rm(file, { force: true });
  }
}

/**
 * Whether the process in a temporary file's name may still run; on other machines that cannot be
 * known.
 */
function mayHaveWriter(name: string): boolean {
  const [, host, pid] = /^(.*)\.(\d+)\.[^.]*$/.exec(name) ?? [];
  return host !== hostname() || isProcessAlive(Number(pid));
}

function isProcessAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemErrorCode(error) === "EPERM";
  }
}
