import type { Job } from "../../contract/job.ts";
import { byId, type SyncContext } from "./sync-context.ts";

/** A batch that is cancelled as a whole is cancelled by one write, which the operator hands on. */
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
