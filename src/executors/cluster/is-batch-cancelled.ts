import type { Job } from "../../contract/job.ts";
import { byId, type SyncContext } from "./sync-context.ts";

/** Whether a job's batch is cancelled as a whole: then the operator cancels the jobs. */
export async function isBatchCancelled(
  { records, batches }: SyncContext,
  { batchId }: Job,
): Promise<boolean> {
  if (batchId === null) return false;
  const [batch] = batches.cache.byIndex(byId, batchId);
  if (batch === undefined) return false;
  const status = await records.batches.findStatus(batchId);
  return batch.spec.cancel || status === "Cancelling";
}
