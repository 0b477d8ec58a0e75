import type { Records } from "../../records/open-records.ts";
import { openServiceRecords } from "../storage-folder/open-service-records.ts";
import {
  makePrivate,
  type RecordsPlace,
  requireDatabase,
} from "../storage-folder/data-directory.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { statOrUndefined } from "../../storage/file-error.ts";

/**
 * Runs a command on the service's records, whether the service runs or not.
 * @throws StartError where no service has begun: it would know nothing of what is made there
 */
export async function withRecords<T>(
  place: RecordsPlace,
  run: (records: Records, now: Date) => Promise<T>,
): Promise<T> {
  const now = () => new Date();
  await requireRecords(place);
  await makePrivate(place);
  const records = await openServiceRecords(place, { now });
  try {
    return await run(records, now());
  } finally {
    await records.close();
  }
}

async function requireRecords({
  directory,
  database,
  isFile,
  isRebuilt,
}: RecordsPlace): Promise<void> {
  if (!isFile || (await statOrUndefined(database)) !== undefined) return;
  if (!isRebuilt) await requireDatabase(directory, database);
  const message = `No service has its data in "${directory}"`;
  throw new StartError(`${message}: set MOS_DATA_DIR and MOS_PORT to those of the service`);
}
