import type { Records } from "../../src/records/open-records.ts";

const limitSeconds = 240;

/**
 * Resolves when a job's records are as wanted.
 * @param check made at once, and at each change of the records; gives something once they are
 */
export async function untilRecorded<T>(
  { changes }: Pick<Records, "changes">,
  jobId: string,
  check: () => Promise<T | false | undefined>,
): Promise<T> {
  for await (const _ of changes.watch(jobId, AbortSignal.timeout(limitSeconds * 1000))) {
    const found = await check();
    if (found !== false && found !== undefined) return found;
  }
  throw new Error(`The records of the job did not become as wanted within ${limitSeconds} s`);
}
