import { existsSync } from "node:fs";
import { mkdir, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { systemErrorCode } from "../../../src/storage/file-error.ts";
import { isAbandoned } from "./run-folder.ts";

const root = "/sys/fs/cgroup";

/** Makes a cgroup of this name in every hierarchy, for pods to live under; removes those of runs that were killed. */
export async function createCgroup(name: string): Promise<void> {
  for (const hierarchy of await listHierarchies()) {
    const abandoned = (await readdir(hierarchy)).filter(isAbandoned);
    for (const other of abandoned) await removeFolders(join(hierarchy, other)).catch(ignoreInUse);
    await mkdir(join(hierarchy, name));
  }
}

/** Pods of a run that was killed just now are still ending, or another run removes it too. */
function ignoreInUse(error: unknown): void {
  const isInUse = ["EBUSY", "ENOENT"].includes(systemErrorCode(error));
  if (!isInUse) throw error;
}

/** No process may be in there any more. */
export async function removeCgroup(name: string): Promise<void> {
  for (const hierarchy of await listHierarchies()) await removeFolders(join(hierarchy, name));
}

/** One with version 2 of cgroups; one for each controller with version 1, which has no such file at its root. */
async function listHierarchies(): Promise<string[]> {
  if (existsSync(join(root, "cgroup.controllers"))) return [root];
  return (await readdir(root)).map((controller) => join(root, controller));
}

async function removeFolders(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const below = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of [folder, ...below].toSorted().toReversed()) await rmdir(path);
}
