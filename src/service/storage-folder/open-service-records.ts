import { openRecords, type Records, type RecordsOptions } from "../../records/open-records.ts";
import { UnusableDatabaseError } from "../../records/database/postgres-errors.ts";
import { StartError } from "../../settings/parse-environment.ts";
import type { RecordsPlace } from "./data-directory.ts";

/**
 * Opens the records, whose data directory is private (`makePrivate`).
 * @throws StartError where the database cannot be reached, is of a newer version, or is of an older
 * one and in use
 */
export async function openServiceRecords(
  place: RecordsPlace,
  options: RecordsOptions,
): Promise<Records> {
  try {
    return await openRecords(place.database, options);
  } catch (error) {
    if (!(error instanceof UnusableDatabaseError)) throw error;
    throw new StartError(error.message, { cause: error });
  }
}
