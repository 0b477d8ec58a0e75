import { chmod, mkdir, open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { statOrUndefined } from "../storage/file-error.ts";
import { syncFolder } from "../storage/sync-folder.ts";
import type { RecordsPlace } from "./records-place.ts";

/**
 * Makes the data directory and its database, with hashes of tokens and everybody's jobs, readable
 * by their owner only. SQLite gives its other files the mode of the database.
 */
export async function makePrivate({ directory, database, isFile }: RecordsPlace): Promise<void> {
  await createFolder(resolve(directory));
  await restrict(directory, 0o700);
  if (!isFile) return;
  await (await open(database, "a", 0o600)).close();
  for (const suffix of ["", "-wal", "-shm"]) await restrict(`${database}${suffix}`, 0o600);
}

/** Creates a folder, and those that it lies in, so that they survive a power failure. */
async function createFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let created = folder; ; created = dirname(created)) {
    await syncFolder(dirname(created));
    if (created === first) return;
  }
}

/** A volume whose root belongs to another user keeps the mode that its administrator gave it. */
async function restrict(file: string, mode: number): Promise<void> {
  const stats = await statOrUndefined(file);
  if (stats?.uid === process.getuid?.()) await chmod(file, mode);
}
