import { ServiceError } from "../../contract/errors.ts";
import { copyDatabase } from "../../records/database/copy-database.ts";
import { listReferencedBlobs } from "../../records/blobs/list-referenced-blobs.ts";
import { UnusableDatabaseError } from "../../records/database/postgres-errors.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { blobPath, createDirectoryBlobStore } from "../../storage/directory-blob-store.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import { statOrUndefined } from "../../storage/file-error.ts";
import { syncFolder } from "../../storage/receive-file.ts";
import { copyFiles, describeCopies, requireEmptyFolder } from "./copied-files.ts";
import { databasePath, type RecordsPlace, requireFile } from "../storage-folder/data-directory.ts";
import { parsePositionals } from "./command-line.ts";

export const restoreUsage = "restore FOLDER";

/** Copies a backup into an empty data directory. Each file is read and has to have its hash. */
export async function runRestoreCommand(
  args: readonly string[],
  place: RecordsPlace,
): Promise<string> {
  const [folder = ""] = parsePositionals(args, 1, restoreUsage);
  const { directory } = requireFile(place);
  const database = databasePath(folder);
  if ((await statOrUndefined(database)) === undefined) {
    throw new StartError(`The folder "${folder}" has no backup: there is no "${database}"`);
  }
  await requireEmptyFolder(directory);
  const blobs = await createDirectoryBlobStore(directory);
  const copied = await copyFiles(listBlobs(database), (sha256) =>
    restoreBlob(blobs, blobPath(folder, sha256), sha256),
  );
  // At last: a service starts with all files or with no records at all.
  await copyDatabase(database, databasePath(directory));
  await syncFolder(directory);
  return describeCopies(copied, directory, database);
}

function listBlobs(database: string): string[] {
  try {
    return listReferencedBlobs(database);
  } catch (cause) {
    if (!(cause instanceof UnusableDatabaseError)) throw cause;
    throw new StartError(cause.message, { cause });
  }
}

/** The blob's size; undefined where the backup has none. */
async function restoreBlob(
  blobs: BlobStore,
  file: string,
  sha256: string,
): Promise<number | undefined> {
  const stats = await statOrUndefined(file);
  if (stats === undefined) return undefined;
  try {
    await blobs.writeFile(file, { expectedSha256: sha256 });
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause;
    throw new StartError(`The file "${file}" cannot be restored: ${cause.message}`, { cause });
  }
  return stats.size;
}
