import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { limits } from "../contract/limits.ts";
import { statOrUndefined } from "./file-error.ts";
import { isProjectUpload } from "./partial-upload-path.ts";

/**
 * Removes the oldest of a project's interrupted uploads where there is too much of them, but none
 * that is being received.
 * @returns their files
 */
export async function removeExcess(
  incoming: string,
  project: string,
  receiving: ReadonlyMap<string, unknown>,
): Promise<string[]> {
  const names = await readdir(incoming);
  const files = names
    .filter((name) => isProjectUpload(project, name) && !receiving.has(name))
    .map((name) => path.join(incoming, name));
  const found = await Promise.all(
    files.map(async (file) => ({ file, stats: await statOrUndefined(file) })),
  );
  const newestFirst = found
    .flatMap(({ file, stats }) => (stats ? [{ file, size: stats.size, at: stats.mtimeMs }] : []))
    .toSorted((a, b) => b.at - a.at);
  const removed: string[] = [];
  let bytes = 0;
  for (const [i, { file, size }] of newestFirst.entries()) {
    bytes += size;
    if (i + 1 < limits.partialUploads && bytes <= limits.partialUploadBytes) continue;
    await rm(file, { force: true });
    removed.push(file);
  }
  return removed;
}
