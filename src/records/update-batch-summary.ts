import { deriveBatchStatus, zeroCounts } from "../contract/jobs/batch.ts";
import { type BatchSummary, batchSummary } from "../contract/jobs/page.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { queueWebhookEvents } from "./queue-webhook-events.ts";
import type { WriteTransaction } from "./store.ts";

/** Updates a batch's record from its jobs. */
export async function updateBatchSummary(
  writing: WriteTransaction,
  batchId: string,
): Promise<BatchSummary> {
  const { trx, now, effects } = writing;
  const row = await trx
    .selectFrom("batches")
    .select(["document", "project"])
    .where("id", "=", batchId)
    .executeTakeFirstOrThrow();
  const before = batchSummary.parse(JSON.parse(row.document));
  const after = batchSummary.parse({ ...before, ...(await countJobs(writing, batchId)) });
  after.status = deriveBatchStatus(after.counts);
  if (isTerminal(after.status)) after.finishedAt = before.finishedAt ?? now.toISOString();
  await trx
    .updateTable("batches")
    .set({ status: after.status, document: JSON.stringify(after) })
    .where("id", "=", batchId)
    .execute();
  effects.changed.add(batchId);
  if (after.status !== before.status) await queueWebhookEvents(writing, row.project, [after]);
  return after;
}

async function countJobs({ trx }: WriteTransaction, batchId: string) {
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
  const counts = Object.fromEntries(rows.map((row) => [row.status, Number(row.jobs)]));
  return {
    counts: { ...zeroCounts, ...counts },
    gatesFailed: rows.reduce((sum, row) => sum + Number(row.gatesFailed), 0),
  };
}
