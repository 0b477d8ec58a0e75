import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { keptFolder } from "../../contract/worker-protocol/messages.ts";
import { statOrUndefined, systemErrorCode } from "../../storage/file-error.ts";

const run = promisify(execFile);
const marker = ".removed-";

/** The job whose scratch folder has the name, also where the folder is being removed. */
export function scratchOwner(name: string): string {
  return name.split(marker)[0] ?? name;
}

/**
 * Removes a scratch folder, which is renamed first: what a worker left so that it cannot be removed
 * is never used by another attempt, besides what it keeps for that, where there will be one. `rm`
 * takes paths that are longer than those of the system.
 */
export async function removeScratch(folder: string, keepsWork = false): Promise<void> {
  const name = path.basename(folder);
  const isRenamed = name.includes(marker);
  const removed = isRenamed ? folder : `${folder}${marker}${randomUUID()}`;
  try {
    if (!isRenamed) await rename(folder, removed);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return;
    throw error;
  }
  const kept = path.join(removed, keptFolder);
  if (keepsWork && !isRenamed && (await statOrUndefined(kept)) !== undefined) {
    await mkdir(folder);
    await rename(kept, path.join(folder, keptFolder));
  }
  await run("rm", ["-rf", "--", removed]);
}
