import { type BatchSubmission, createBatch } from "./create-batch.ts";
import type { ServerContext } from "./server-context.ts";

/** Creates a batch and submits its jobs to the executor. */
export async function submitBatch(
  context: ServerContext,
  project: string,
  submission: BatchSubmission,
): Promise<void> {
  const { jobs } = await createBatch(context, project, submission);
  const jobIds = jobs.map(({ id }) => id);
  context.executor.submit(project, jobIds);
}
