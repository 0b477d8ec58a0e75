import { constants, copyFile, link, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { copyDatabase } from "../../records/database/copy-database.ts";
import { listReferencedBlobs } from "../../records/blobs/list-referenced-blobs.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { blobPath } from "../../storage/directory-blob-store.ts";
import { statOrUndefined, systemErrorCode } from "../../storage/file-error.ts";
import { syncFolder } from "../../storage/receive-file.ts";
import { copyFiles, describeCopies, requireEmptyFolder, requireFolder } from "./copied-files.ts";
import { databasePath, type RecordsPlace, requireFile } from "../storage-folder/data-directory.ts";
import { parsePositionals } from "./command-line.ts";

export const backupUsage = "backup [--keep=COUNT] FOLDER";

/**
 * Copies records and the files that they name into an empty folder, whether the service runs or
 * not. Files lie in both as one where both are on the same disk: they never change. With `--keep`
 * the copy is a folder of its own in the folder, and so many of the newest stay.
 */
export async function runBackupCommand(
  args: readonly string[],
  place: RecordsPlace,
): Promise<string> {
  const [option = "", ...others] = args;
  const [, count] = /^--keep=([1-9]\d{0,3})$/.exec(option) ?? [];
  if (count === undefined && /^--keep\b/.test(option)) {
    const message = `Option "${option}" must be --keep= and how many are kept, 1 to 9999`;
    throw new StartError(`${message}\nUsage: ${backupUsage}`);
  }
  const [folder = ""] = parsePositionals(count === undefined ? args : others, 1, backupUsage);
  const { directory } = requireFile(place);
  if (count === undefined) return backUp(directory, folder);
  return backUpAmongOthers(directory, folder, Number(count));
}

const unfinished = ".unfinished";
const finishedName = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/;

/** A copy has its name once it is complete; what an earlier run left behind goes. */
async function backUpAmongOthers(
  directory: string,
  folder: string,
  count: number,
): Promise<string> {
  await requireFolder(folder);
  for (const name of await readdir(folder)) {
    if (name.endsWith(unfinished)) await rm(join(folder, name), { recursive: true });
  }
  const own = new Date().toISOString().replace(/\.\d+/, "").replaceAll(":", "-");
  const copy = join(folder, own);
  const summary = await backUp(directory, copy + unfinished);
  await rename(copy + unfinished, copy);
  await syncFolder(folder);
  // This copy stays also where the clock was ahead when others were made.
  const others = (await readdir(folder)).filter((name) => finishedName.test(name) && name !== own);
  for (const name of others
    .toSorted()
    .toReversed()
    .slice(count - 1)) {
    await rm(join(folder, name), { recursive: true });
  }
  return summary.replaceAll(copy + unfinished, copy);
}

async function backUp(directory: string, folder: string): Promise<string> {
  if ((await statOrUndefined(databasePath(directory))) === undefined) {
    throw new StartError(`There are no records in the data directory "${directory}"`);
  }
  await requireEmptyFolder(folder);
  const copy = databasePath(folder);
  await copyDatabase(databasePath(directory), copy);
  const folders = new Set([folder]);
  const copied = await copyFiles(listReferencedBlobs(copy), async (sha256) => {
    const target = blobPath(folder, sha256);
    const size = await linkBlob(blobPath(directory, sha256), target);
    if (size !== undefined) folders.add(dirname(target)).add(dirname(dirname(target)));
    return size;
  });
  for (const written of folders) await syncFolder(written);
  return describeCopies(copied, folder, copy);
}

/** The blob's size; undefined if there is none. */
async function linkBlob(from: string, to: string): Promise<number | undefined> {
  const stats = await statOrUndefined(from);
  if (stats === undefined) return undefined;
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  try {
    await link(from, to);
  } catch (error) {
    if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP"].includes(systemErrorCode(error))) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
    await using file = await open(to, "r");
    await file.sync();
  }
  return stats.size;
}
