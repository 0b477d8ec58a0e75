import type { Records } from "../../records/open-records.ts";
import { openServiceRecords } from "../storage-folder/open-service-records.ts";
import { makePrivate, type RecordsPlace } from "../storage-folder/data-directory.ts";

/** Runs a command on the service's records, whether the service runs or not. */
export async function withRecords<T>(
  place: RecordsPlace,
  run: (records: Records, now: Date) => Promise<T>,
): Promise<T> {
  const now = () => new Date();
  await makePrivate(place);
  const records = await openServiceRecords(place, { now });
  try {
    return await run(records, now());
  } finally {
    await records.close();
  }
}
