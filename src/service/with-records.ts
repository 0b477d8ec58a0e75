import type { Records } from "../records/open-records.ts";
import { makePrivate } from "./make-private.ts";
import { openServiceRecords } from "./open-service-records.ts";

/** Runs a command on the service's records, whether the service runs or not. */
export async function withRecords<T>(
  directory: string,
  run: (records: Records, now: Date) => Promise<T>,
): Promise<T> {
  await makePrivate(directory);
  const now = () => new Date();
  const records = await openServiceRecords(directory, { now });
  try {
    return await run(records, now());
  } finally {
    await records.close();
  }
}
