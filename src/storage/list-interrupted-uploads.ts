import { readdir } from "node:fs/promises";
import path from "node:path";
import { statOrUndefined } from "./file-error.ts";
import { isProjectUpload } from "./partial-upload-path.ts";

interface InterruptedUpload {
  readonly file: string;
  readonly bytes: number;
  /** When it was written last, milliseconds since 1970. */
  readonly at: number;
}

/** A project's uploads that were interrupted and that nobody sends at present. */
export async function listInterruptedUploads(
  incoming: string,
  project: string,
  receiving: ReadonlyMap<string, unknown>,
): Promise<InterruptedUpload[]> {
  const files = (await readdir(incoming))
    .filter((name) => isProjectUpload(project, name) && !receiving.has(name))
    .map((name) => path.join(incoming, name));
  const found = await Promise.all(
    files.map(async (file) => ({ file, stats: await statOrUndefined(file) })),
  );
  return found.flatMap(({ file, stats }) =>
    stats ? [{ file, bytes: stats.size, at: stats.mtimeMs }] : [],
  );
}
