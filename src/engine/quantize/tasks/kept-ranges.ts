import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { RemoteFiles } from "../../checkpoints/remote-files.ts";
import { copyRange } from "../../../model-files/file-access.ts";

/** A part of a file of a checkpoint that is kept as it was fetched. */
export const keptRange = z.object({
  file: z.string().describe("Below the checkpoint's folder."),
  offset: z.int().min(0),
  bytes: z.int().min(0),
});
export type KeptRange = z.infer<typeof keptRange>;

interface KeptFiles {
  readonly files: RemoteFiles;
  /** What was fetched so far, in the order in which it is kept. */
  readonly ranges: readonly KeptRange[];
}

/**
 * Fetches as the given files do, and keeps a copy of what was fetched, one part after the other.
 * @param folder the checkpoint's
 * @param to file of the copies, and where the first one begins
 */
export function keepFetched(
  files: RemoteFiles,
  folder: string,
  to: { readonly file: FileHandle; readonly position: number },
): KeptFiles {
  const ranges: KeptRange[] = [];
  let end = to.position;
  const fetch: RemoteFiles["fetch"] = async (range, place, signal) => {
    await files.fetch(range, place, signal);
    const position = end;
    end += range.length;
    ranges.push({
      file: path.relative(folder, range.path),
      offset: range.offset,
      bytes: range.length,
    });
    await using fetched = await open(place.path);
    const from = { file: fetched, position: place.offset };
    await copyRange(from, { file: to.file, position }, range.length);
  };
  return { files: { ...files, fetch }, ranges };
}
