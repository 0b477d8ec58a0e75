import { createBatch } from "./create-batch.ts";
import { createOnce } from "./idempotency.ts";
import { requireRecorded } from "./require-job.ts";
import { requireOwnSuite } from "./require-own-suite.ts";
import { requireAllowedReport, resolveReport } from "./resolve-report.ts";
import { type RepeatedBatch, resubmitJobs } from "./resubmit-jobs.ts";
import type { Caller } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import { type Batch, batch as batchSchema, batchFields } from "../../contract/batches/batch.ts";
import { hasScope, reachedOrigin } from "../../contract/people/may.ts";
import { creationOwner } from "../../contract/people/principal.ts";
import { retriedBatch } from "../../contract/routes/batch-routes.ts";
import { findRequester } from "../../records/people/audit-records.ts";
import type { CreatingRequest } from "../../records/people/idempotency-records.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { notFoundError } from "../http/problem-response.ts";
import { linkFormerTrace, requestSpan } from "../http/request-id.ts";
import type { ServerContext } from "../http/server-context.ts";

/** Starts jobs of a batch again, by default those that failed. */
const retryBatch: RouteHandlers["retryBatch"] = async (context, input) => {
  const { caller, params, query, audit } = input;
  const statuses = query.status ?? ["Failed"];
  const { batches } = context.records;
  const batch = await batches.find(caller.project, params.id);
  if (!batch) throw notFoundError("batch", params.id);
  const jobs = await batches.listRepeatable(caller.project, params.id, statuses);
  const [first] = jobs;
  if (first === undefined) {
    const message = `No job of batch "${batch.id}" is ${statuses.join(" or ")}`;
    throw new ServiceError("nothing_to_retry", message);
  }
  await linkFormerTrace(context, input.request, first.id);
  const repeated = describeRepeated(batch);
  if (repeated.revision?.recordBaseline) await requireOwnSuite(context, caller, repeated);
  const body = { batch: batch.id, statuses };
  const create = async (idempotency: CreatingRequest["idempotency"]) => {
    await context.requireSpace();
    return resubmitJobs(context, creationOwner(caller), {
      batch: repeated,
      jobs,
      report: await findOwnReport(context, caller, batch.id),
      createdBy: findRequester(audit),
      traceparent: requestSpan(input.request)?.traceparent,
      audit,
      idempotency,
    });
  };
  const asked = { ...input, body };
  const { created, headers } = await createOnce(context.records, asked, retriedBatch, create);
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

/** A batch's parallelism is only in its request, which is not kept. */
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

type BatchHandlers = Pick<
  RouteHandlers,
  "submitBatch" | "listBatches" | "getBatch" | "cancelBatch" | "retryBatch" | "deleteBatch"
>;

export const batchHandlers: BatchHandlers = {
  async submitBatch(context, input) {
    const { caller, body, audit } = input;
    if (body.revision?.recordBaseline) await requireOwnSuite(context, caller, body);
    const { report, ...request } = body;
    const submission = report
      ? await resolveReport(context, caller, { ...request, report })
      : { request, report };
    const create = (idempotency: CreatingRequest["idempotency"]) =>
      createBatch(context, creationOwner(caller), {
        ...submission,
        createdBy: findRequester(audit),
        traceparent: requestSpan(input.request)?.traceparent,
        audit,
        idempotency,
      });
    const { created, headers } = await createOnce(context.records, input, batchSchema, create);
    const location = `/v1/batches/${created.id}`;
    return { status: 202, json: created, headers: { location, ...headers } };
  },

  async listBatches({ records }, { caller, query }) {
    const origin = reachedOrigin(caller, "readWork");
    return { status: 200, json: await records.batches.list(caller.project, query, origin) };
  },

  async getBatch({ records }, { caller, params }) {
    const batch = await records.batches.find(caller.project, params.id);
    if (!batch) throw notFoundError("batch", params.id);
    return { status: 200, json: batch };
  },

  async cancelBatch({ records }, { caller, params, audit }) {
    const batch = await records.batches.cancel(caller.project, params.id, audit);
    if (!batch) throw notFoundError("batch", params.id);
    return { status: batch.status === "Cancelled" ? 200 : 202, json: batch };
  },

  retryBatch,

  async deleteBatch(context, { caller, params: { id }, audit }) {
    const { records } = context;
    const isDeleted = await records.deletions.deleteBatch({
      project: caller.project,
      id,
      audit,
      withBaselines: hasScope(caller, "recordBaselines"),
      requireJobs: (jobIds) => requireRecorded(context, jobIds),
    });
    if (!isDeleted) throw notFoundError("batch", id);
    return { status: 204 };
  },
};
