import { chmod, mkdir, open } from "node:fs/promises";
import { statOrUndefined } from "../storage/file-error.ts";
import { databasePath } from "./database-path.ts";

/**
 * Makes the data directory and its database, with hashes of tokens and everybody's jobs, readable
 * by their owner only. SQLite gives its other files the mode of the database.
 */
export async function makePrivate(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await restrict(directory, 0o700);
  const database = databasePath(directory);
  await (await open(database, "a", 0o600)).close();
  for (const suffix of ["", "-wal", "-shm"]) await restrict(`${database}${suffix}`, 0o600);
}

/** A volume whose root belongs to another user keeps the mode that its administrator gave it. */
async function restrict(file: string, mode: number): Promise<void> {
  const stats = await statOrUndefined(file);
  if (stats?.uid === process.getuid?.()) await chmod(file, mode);
}
