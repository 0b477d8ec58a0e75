import { openRecords, type Records, type RecordsOptions } from "../../records/open-records.ts";
import { UnusableDatabaseError } from "../../records/database/postgres-errors.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { errorMessage } from "../../log/error-message.ts";
import { isFullDisk } from "../../storage/file-error.ts";
import { type RecordsPlace, restoreAdvice } from "./data-directory.ts";

/**
 * Opens the records, whose data directory is private (`makePrivate`).
 * @throws StartError where the database cannot be reached, is damaged, is of a newer version,
 * or is of an older one and in use
 */
export async function openServiceRecords(
  place: RecordsPlace,
  options: RecordsOptions,
): Promise<Records> {
  try {
    return await openRecords(place.database, options);
  } catch (error) {
    throw explainFailure(place, error);
  }
}

/** SQLite's codes of a file that is damaged, and of one that is not a database. */
const damageCodes: readonly unknown[] = [11, 26];

function explainFailure({ database, isFile }: RecordsPlace, error: unknown): unknown {
  if (error instanceof UnusableDatabaseError)
    return new StartError(error.message, { cause: error });
  if (isFile && isFullDisk(error)) {
    const message = `The database "${database}" cannot be opened: its disk is full`;
    return new StartError(message, { cause: error });
  }
  const causes = listCauses(error);
  const damage = causes.find(
    (each) => "errcode" in each && damageCodes.includes(Number(each.errcode) & 0xff),
  );
  if (!isFile || damage === undefined) return error;
  const message = `The database "${database}" is damaged, or its disk fails (${errorMessage(damage)})`;
  return new StartError(`${message}: ${restoreAdvice}`, { cause: error });
}

function listCauses(error: unknown): Error[] {
  return error instanceof Error ? [error, ...listCauses(error.cause)] : [];
}
