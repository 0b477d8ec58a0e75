import { openRecords, type Records, type RecordsOptions } from "../../records/open-records.ts";
import { UnusableDatabaseError } from "../../records/database/postgres-errors.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { makePrivate, type RecordsPlace } from "./data-directory.ts";

/**
 * Opens the records, after making the data directory private.
 * @throws StartError where the database cannot be reached, is of a newer version, or is of an older
 * one and in use
 */
export async function openServiceRecords(
  place: RecordsPlace,
  options: RecordsOptions,
): Promise<Records> {
  await makePrivate(place);
  try {
    return await openRecords(place.database, options);
  } catch (error) {
    if (!(error instanceof UnusableDatabaseError)) throw error;
    throw new StartError(error.message, { cause: error });
  }
}
