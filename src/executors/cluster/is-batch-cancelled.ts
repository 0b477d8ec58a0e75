import type { Job } from "../../contract/jobs/job.ts";
import { findInNamespace } from "./find-in-namespace.ts";
import type { SyncContext } from "./sync-context.ts";

/** Whether a job's batch is cancelled as a whole: then the operator cancels the jobs. */
export async function isBatchCancelled(
  { records, batches }: SyncContext,
  { batchId }: Job,
  namespace: string,
): Promise<boolean> {
  if (batchId === null) return false;
  const batch = findInNamespace(batches, batchId, namespace);
  if (batch === undefined) return false;
  const status = await records.batches.findStatus(batchId);
  return batch.spec.cancel || status === "Cancelling";
}
