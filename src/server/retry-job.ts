import { ServiceError } from "../contract/errors.ts";
import type { Job, JobRequest } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { linkFormerTrace } from "./link-former-trace.ts";
import { requireJob } from "./require-job.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import { showJob } from "./show-job.ts";
import { startJob } from "./start-job.ts";

/** Starts a job anew that has ended: the same model, target, recipe, gates and labels. */
export const retryJob: RouteHandlers["retryJob"] = async (context, input) => {
  const { caller, params } = input;
  const former = await requireJob(context.records, caller, params.id);
  const { id, kind, status } = former;
  if (!isTerminal(status)) {
    throw new ServiceError("job_unfinished", `Job "${id}" cannot be tried again: it is ${status}`);
  }
  await linkFormerTrace(context, input.request, id);
  const body = buildRetryRequest(former);
  const { created, headers } = await startJob(context, kind, { ...input, body });
  const location = `/v1/jobs/${created.id}`;
  return { status: 202, json: showJob(created), headers: { location, ...headers } };
};

/** The request that gives the same job: its recipe is complete, and nothing is laid under it. */
function buildRetryRequest({ model, ...job }: Job): JobRequest {
  const { source, sha256, name: modelName } = model;
  const { name, target, recipe, gateLimits: gates, dryRun, deadlineSeconds, labels } = job;
  const reference = { source, sha256, name: modelName };
  return { name, model: reference, target, recipe, gates, dryRun, deadlineSeconds, labels };
}
