import type { SuiteHistory } from "../../contract/batches/suite.ts";

/**
 * The place of the oldest of the batches that fail gates up to the newest one; undefined where the
 * newest fails none. Batches without a result of the model say nothing.
 */
export function findFirstFailing({
  batches,
  jobs,
}: Pick<SuiteHistory, "batches" | "jobs">): number | undefined {
  const results = Map.groupBy(
    jobs.filter(({ status }) => status === "Completed"),
    ({ batchId }) => batchId,
  );
  let found: number | undefined;
  for (const [place, { id }] of [...batches.entries()].toReversed()) {
    const ofBatch = results.get(id);
    if (ofBatch === undefined) continue;
    if (!ofBatch.some(({ gatesFailed }) => gatesFailed)) break;
    found = place;
  }
  return found;
}
