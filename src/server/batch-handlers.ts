import { type Batch, batch as batchSchema } from "../contract/jobs/batch.ts";
import { hasScope, reachedOrigin } from "../contract/people/may.ts";
import { creationOwner } from "../contract/people/principal.ts";
import { createBatch } from "./create-batch.ts";
import { createdByCaller } from "./created-by.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { notFoundError } from "./not-found-error.ts";
import { requireRecorded } from "./require-recorded.ts";
import { requireOwnSuite } from "./require-own-suite.ts";
import { resolveReport } from "./resolve-report.ts";
import { retryBatch } from "./retry-batch.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import { requestSpan } from "./trace-requests.ts";

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
    const { created, replayed, headers } = await createIdempotently<Batch>(context, input, {
      schema: batchSchema,
      create: async (answered) => {
        await context.requireSpace();
        const createdBy = createdByCaller(caller);
        const traceparent = requestSpan(input.request)?.traceparent;
        const submitted = { ...submission, answered, createdBy, traceparent, audit };
        return createBatch(context, creationOwner(caller), submitted);
      },
    });
    if (!replayed) {
      const jobIds = created.jobs.map((job) => job.id);
      context.executor.submit(caller.project, jobIds);
    }
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
