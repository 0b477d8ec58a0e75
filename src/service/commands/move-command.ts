import { listReferencedBlobs } from "../../records/blobs/list-referenced-blobs.ts";
import { moveRecords } from "../../records/move-records.ts";
import { UnusableDatabaseError } from "../../records/database/postgres-errors.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { blobPath } from "../../storage/directory-blob-store.ts";
import type { BlobFiles } from "../../storage/blob-store.ts";
import { statOrUndefined } from "../../storage/file-error.ts";
import { copyFiles, describeMissing } from "./copied-files.ts";
import {
  databasePath,
  lockDataDirectory,
  type RecordsPlace,
} from "../storage-folder/data-directory.ts";
import { openBucket } from "../storage-folder/open-storage.ts";
import { parsePositionals } from "./command-line.ts";
import { readS3Access } from "../settings/read-credentials.ts";
import type { Settings } from "../settings/settings.ts";

export const moveUsage = "move";

/**
 * Moves the records of the data directory to the database of the settings, and its files to their
 * bucket where there is one. The directory stays as it is; a move that was interrupted goes on.
 */
export async function runMoveCommand(
  args: readonly string[],
  { directory, database, isFile }: RecordsPlace,
  settings: Settings,
): Promise<string> {
  parsePositionals(args, 0, moveUsage);
  if (isFile) throw new StartError("MOS_DATABASE_URL must name the database to move to");
  const path = databasePath(directory);
  if ((await statOrUndefined(path)) === undefined) {
    throw new StartError(`There are no records in the data directory "${directory}"`);
  }
  using _lock = lockDataDirectory(directory);
  const s3 = await readS3Access(settings);
  try {
    const files = s3 && (await moveFiles(directory, await openBucket(s3)));
    const rows = await moveRecords(path, database);
    return [`Moved ${rows} records; counts and hashes are equal`, ...(files ?? [])].join("\n");
  } catch (cause) {
    if (!(cause instanceof UnusableDatabaseError)) throw cause;
    throw new StartError(cause.message, { cause });
  }
}

/** Before the records: a service that finds them finds the files too. */
async function moveFiles(
  directory: string,
  bucket: BlobFiles & AsyncDisposable,
): Promise<string[]> {
  await using blobs = bucket;
  const copied = await copyFiles(listReferencedBlobs(databasePath(directory)), async (sha256) => {
    const known = await blobs.find(sha256);
    if (known !== undefined) return known.bytes;
    const file = blobPath(directory, sha256);
    if ((await statOrUndefined(file)) === undefined) return undefined;
    return (await blobs.writeFile(file, { expectedSha256: sha256 })).bytes;
  });
  return [
    `Files in the bucket: ${copied.files}`,
    ...describeMissing(copied, databasePath(directory)),
  ];
}
