import { StartError } from "../settings/start-error.ts";
import { databasePath } from "./database-path.ts";
import type { Settings } from "./settings.ts";

/** Where the service keeps its records. */
export interface RecordsPlace {
  /** The data directory. */
  readonly directory: string;
  /** A file there, or the URL of a PostgreSQL database. */
  readonly database: string;
  readonly isFile: boolean;
}

export function recordsPlace({
  MOS_DATA_DIR: directory,
  MOS_DATABASE_URL: url,
}: Pick<Settings, "MOS_DATA_DIR" | "MOS_DATABASE_URL">): RecordsPlace {
  return { directory, database: url ?? databasePath(directory), isFile: url === undefined };
}

/** @throws StartError where the records are on a server */
export function requireFile(place: RecordsPlace): RecordsPlace {
  if (place.isFile) return place;
  const message = "The records are in the database of MOS_DATABASE_URL, which this does not copy";
  throw new StartError(`${message}: use the server's own tools, such as pg_dump`);
}
