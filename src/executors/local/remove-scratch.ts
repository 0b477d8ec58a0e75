import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rename } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { systemErrorCode } from "../../storage/file-error.ts";

const run = promisify(execFile);
const marker = ".removed-";

/** The job whose scratch folder has the name, also where the folder is being removed. */
export function scratchOwner(name: string): string {
  return name.split(marker)[0] ?? name;
}

/**
 * Removes a scratch folder, which is renamed first: what a worker left so that it cannot be removed
 * is never used by another attempt. `rm` takes paths that are longer than those of the system.
 */
export async function removeScratch(folder: string): Promise<void> {
  const name = path.basename(folder);
  const isRenamed = name.includes(marker);
  const removed = isRenamed ? folder : `${folder}${marker}${randomUUID()}`;
  try {
    if (!isRenamed) await rename(folder, removed);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return;
    throw error;
  }
  await run("rm", ["-rf", "--", removed]);
}
