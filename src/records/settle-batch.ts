import { batchSummary } from "../contract/page.ts";
import { type BatchStatus, isTerminal, jobStatus, type JobStatus } from "../contract/status.ts";
import type { Writing } from "./store.ts";

export type StatusCounts = Record<JobStatus, number>;

/** A batch's status follows from its jobs' alone. */
export function batchStatusOf(counts: StatusCounts): BatchStatus {
  const present = jobStatus.options.filter((status) => counts[status] > 0);
  const unfinished = present.filter((status) => !isTerminal(status));
  if (unfinished.length > 0) {
    if (unfinished.every((status) => status === "Cancelling")) return "Cancelling";
    return present.every((status) => status === "Pending") ? "Pending" : "Running";
  }
  if (present.includes("Failed")) return "Failed";
  return present.includes("Cancelled") ? "Cancelled" : "Completed";
}

/** Brings a batch's record up to date with its jobs. */
export async function settleBatch(writing: Writing, batchId: string): Promise<{ failFast: boolean }> {
  const { trx, now, effects } = writing;
  const row = await trx.selectFrom("batches").select("document").where("id", "=", batchId).executeTakeFirstOrThrow();
  const before = batchSummary.parse(JSON.parse(row.document));
  const rows = await trx
    .selectFrom("jobs")
    .select((eb) => [
      "status",
      eb.fn.countAll<number>().as("jobs"),
      eb.fn.sum<number>("gates_failed").as("gatesFailed"),
    ])
    .where("batch_id", "=", batchId)
    .groupBy("status")
    .execute();

  const counts = Object.fromEntries(rows.map((of) => [of.status, Number(of.jobs)]));
  const after = batchSummary.parse({
    ...before,
    counts: { ...noJobs, ...counts },
    gatesFailed: rows.reduce((sum, of) => sum + Number(of.gatesFailed), 0),
  });
  after.status = batchStatusOf(after.counts);
  const ended = after.status === "Completed" || after.status === "Failed" || after.status === "Cancelled";
  if (ended) after.finishedAt = before.finishedAt ?? now.toISOString();

  await trx
    .updateTable("batches")
    .set({ status: after.status, document: JSON.stringify(after) })
    .where("id", "=", batchId)
    .execute();
  effects.changed.add(batchId);
  return { failFast: after.failFast };
}

export const noJobs: StatusCounts = {
  Pending: 0,
  Sharding: 0,
  Optimizing: 0,
  Completed: 0,
  Failed: 0,
  Cancelling: 0,
  Cancelled: 0,
};
