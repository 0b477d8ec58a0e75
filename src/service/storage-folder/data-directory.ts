import { chmod, mkdir, open, opendir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorMessage } from "../../log/error-message.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { statOrUndefined, systemErrorCode } from "../../storage/file-error.ts";
import { syncFolder } from "../../storage/receive-file.ts";
import type { Settings } from "../settings/settings.ts";

/** What to do where records are lost. */
export const restoreAdvice = "restore a backup into an empty folder, by the command `restore`";

/**
 * Locks a data directory for this service until it is disposed of. SQLite's lock belongs to the
 * process, so the operating system frees it however the process ends.
 * @throws StartError where another service has locked it
 */
export function lockDataDirectory(directory: string): Disposable {
  const lock = new DatabaseSync(join(directory, "service.lock"), { timeout: 0 });
  try {
    lock.exec("begin exclusive");
  } catch (cause) {
    lock.close();
    throw new StartError(`Another service uses the data directory "${directory}"`, { cause });
  }
  return { [Symbol.dispose]: () => lock.close() };
}

/**
 * Makes the data directory and its database, with hashes of tokens and everybody's jobs, readable
 * by their owner only. SQLite gives its other files the mode of the database.
 * @throws StartError where the database of stored files is lost, or the directory cannot be written
 */
export async function makePrivate(place: RecordsPlace): Promise<void> {
  try {
    await createPrivate(place);
  } catch (cause) {
    if (!unusable.has(systemErrorCode(cause))) throw cause;
    const message = `The data directory "${place.directory}" cannot be used`;
    throw new StartError(`${message}: ${errorMessage(cause)}`, { cause });
  }
}

/** Codes of a directory that is a file, or another user's, or only to be read. */
const unusable: ReadonlySet<string> = new Set(["EEXIST", "ENOTDIR", "EACCES", "EPERM", "EROFS"]);

async function createPrivate({
  directory,
  database,
  isFile,
  isRebuilt,
}: RecordsPlace): Promise<void> {
  await createFolder(resolve(directory));
  await restrict(directory, 0o700);
  if (!isFile) return;
  if (!isRebuilt) await requireDatabase(directory, database);
  await (await open(database, "a", 0o600)).close();
  for (const suffix of ["", "-wal", "-shm"]) await restrict(`${database}${suffix}`, 0o600);
}

/**
 * A new database beside the files of another one would have a new administrator, and hide the loss.
 * @throws StartError
 */
export async function requireDatabase(directory: string, database: string): Promise<void> {
  const stats = await statOrUndefined(database);
  if (stats !== undefined && stats.size > 0) return;
  const blobs = join(directory, "blobs");
  if (!(await hasFiles(blobs))) return;
  const state = stats === undefined ? "is missing" : "is empty";
  const message = `The database "${database}" ${state}, while "${blobs}" has files of its jobs`;
  throw new StartError(`${message}: ${restoreAdvice}, or remove the files to start over`);
}

async function hasFiles(folder: string): Promise<boolean> {
  try {
    for await (const entry of await opendir(folder, { recursive: true })) {
      if (entry.isFile()) return true;
    }
    return false;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemErrorCode(error))) return false;
    throw error;
  }
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

/** The file of the service's records. */
export function databasePath(dataDirectory: string): string {
  return join(dataDirectory, "service.sqlite");
}

/** Where the service keeps its records. */
export interface RecordsPlace {
  /** The data directory. */
  readonly directory: string;
  /** A file there, or the URL of a PostgreSQL database. */
  readonly database: string;
  readonly isFile: boolean;
  /** Whether the live jobs of a lost database are found again, in the cluster's resources. */
  readonly isRebuilt: boolean;
}

export function recordsPlace({
  MOS_DATA_DIR: directory,
  MOS_DATABASE_URL: url,
  MOS_EXECUTOR: executor,
}: Pick<Settings, "MOS_DATA_DIR" | "MOS_DATABASE_URL"> &
  Partial<Pick<Settings, "MOS_EXECUTOR">>): RecordsPlace {
  return {
    directory,
    database: url ?? databasePath(directory),
    isFile: url === undefined,
    isRebuilt: executor === "cluster",
  };
}

/** @throws StartError where the records are on a server */
export function requireFile(place: RecordsPlace): RecordsPlace {
  if (place.isFile) return place;
  const message = "The records are in the database of MOS_DATABASE_URL, which this does not copy";
  throw new StartError(`${message}: use the server's own tools, such as pg_dump`);
}
