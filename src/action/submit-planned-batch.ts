import * as core from "@actions/core";
import type { ServiceClient } from "./service-client.ts";
import { ProblemError } from "../client/problem-error.ts";
import type { Batch, BatchRequest } from "../contract/jobs/batch.ts";
import { digest } from "./step-identity.ts";

/** Submits a batch, which records no baseline where the token does not allow it. */
export async function submitPlannedBatch(
  client: ServiceClient,
  body: BatchRequest,
): Promise<Batch> {
  const batch = await submitIdempotently(client, body).catch(async (error: unknown) => {
    const isRefused = error instanceof ProblemError && error.problem.code === "missing_scope";
    if (!isRefused || !body.revision?.recordBaseline) throw error;
    core.notice(
      "The results are not recorded as a baseline: the token lacks the scope baselines:write",
    );
    const revision = { ...body.revision, recordBaseline: false };
    return submitIdempotently(client, { ...body, revision });
  });
  core.info(`Batch ${batch.id}: ${batch.jobs.length} jobs`);
  return batch;
}

/** Creates no second batch when repeated. The body's labels make the key unique to the attempt. */
async function submitIdempotently(client: ServiceClient, body: BatchRequest): Promise<Batch> {
  return client.call("submitBatch", { headers: { "idempotency-key": digest(body) }, body });
}
