import { openRecords, type Records, type RecordsOptions } from "../records/open-records.ts";
import { UnusableDatabaseError } from "../records/unusable-database-error.ts";
import { StartError } from "../settings/start-error.ts";
import { databasePath } from "./database-path.ts";

/**
 * Opens the records of a data directory.
 * @throws StartError where the database is of a newer version, or of an older one and in use
 */
export async function openServiceRecords(
  directory: string,
  options: RecordsOptions,
): Promise<Records> {
  try {
    return await openRecords(databasePath(directory), options);
  } catch (error) {
    if (!(error instanceof UnusableDatabaseError)) throw error;
    throw new StartError(error.message, { cause: error });
  }
}
