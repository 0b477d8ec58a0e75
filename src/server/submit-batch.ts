import type { Owner } from "../contract/owner.ts";
import { type BatchSubmission, createBatch } from "./create-batch.ts";
import type { ServerContext } from "./server-context.ts";

/** Creates a batch and submits its jobs to the executor. */
export async function submitBatch(
  context: ServerContext,
  owner: Owner,
  submission: BatchSubmission,
): Promise<void> {
  const { jobs } = await createBatch(context, owner, submission);
  const jobIds = jobs.map(({ id }) => id);
  context.executor.submit(owner.project, jobIds);
}
