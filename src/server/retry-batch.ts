import type { Caller } from "../auth/authenticate.ts";
import { type Batch, batchFields } from "../contract/jobs/batch.ts";
import { hasScope } from "../contract/people/may.ts";
import { ServiceError } from "../contract/errors.ts";
import { type RetriedBatch, retriedBatch } from "../contract/routes/batch-routes.ts";
import { creationOwner } from "../contract/people/principal.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { createdByCaller } from "./created-by.ts";
import { linkFormerTrace } from "./link-former-trace.ts";
import { notFoundError } from "./not-found-error.ts";
import { requireOwnSuite } from "./require-own-suite.ts";
import { type RepeatedBatch, resubmitJobs } from "./resubmit-jobs.ts";
import { requireAllowedReport } from "./resolve-report.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";
import { requestSpan } from "./trace-requests.ts";

/** Starts jobs of a batch anew, by default those that failed. */
export const retryBatch: RouteHandlers["retryBatch"] = async (context, input) => {
  const { caller, params, query, audit } = input;
  const statuses = query.status ?? ["Failed"];
  const found = await context.records.batches.findWithJobs(caller.project, params.id, statuses);
  if (!found) throw notFoundError("batch", params.id);
  const { batch, jobs } = found;
  const [first] = jobs;
  if (first === undefined) {
    const message = `No job of batch "${batch.id}" is ${statuses.join(" or ")}`;
    throw new ServiceError("nothing_to_retry", message);
  }
  await linkFormerTrace(context, input.request, first.id);
  const repeated = describeRepeated(batch);
  if (repeated.revision?.recordBaseline) await requireOwnSuite(context, caller, repeated);
  const retried = { ...input, body: { batch: batch.id, statuses } };
  const { created, headers } = await createIdempotently<RetriedBatch>(context, retried, {
    schema: retriedBatch,
    async create(answered) {
      await context.requireSpace();
      const createdBy = createdByCaller(caller);
      const report = await findOwnReport(context, caller, batch.id);
      const traceparent = requestSpan(input.request)?.traceparent;
      const order = { batch: repeated, jobs, report, createdBy, traceparent, audit, answered };
      return resubmitJobs(context, creationOwner(caller), order);
    },
  });
  return { status: 202, json: created, headers };
};

/**
 * A workflow writes the check run of a report again where it could ask for that report now.
 * @throws ServiceError validation_failed
 */
async function findOwnReport({ records, github }: ServerContext, caller: Caller, batchId: string) {
  if (!hasScope(caller, "requestReport")) return undefined;
  const report = await records.reports.find(batchId);
  if (report && caller.workflow !== null) {
    const asked = { ...report.request, report: { github: report.settings } };
    await requireAllowedReport(github, caller.workflow, asked);
  }
  return report;
}

/** A batch's parallelism is in its request alone, which is not kept. */
function describeRepeated({ name, suite, revision, kind, failFast, labels }: Batch): RepeatedBatch {
  return {
    name,
    suite: suite ?? undefined,
    revision: revision ?? undefined,
    kind,
    failFast,
    labels,
    parallelism: batchFields.shape.parallelism.parse(undefined),
  };
}
