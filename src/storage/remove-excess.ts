import { rm } from "node:fs/promises";
import { limits } from "../contract/limits.ts";
import { listInterruptedUploads } from "./list-interrupted-uploads.ts";

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
  const found = await listInterruptedUploads(incoming, project, receiving);
  const newestFirst = found.toSorted((a, b) => b.at - a.at);
  const removed: string[] = [];
  let total = 0;
  for (const [i, { file, bytes }] of newestFirst.entries()) {
    total += bytes;
    if (i + 1 < limits.partialUploads && total <= limits.partialUploadBytes) continue;
    await rm(file, { force: true });
    removed.push(file);
  }
  return removed;
}
