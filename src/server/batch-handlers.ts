import { type Caller, requireScope } from "../auth/authenticate.ts";
import { type Batch, batch as batchSchema, type BatchRequest } from "../contract/batch.ts";
import { createBatch } from "./create-batch.ts";
import { createdByCaller } from "./created-by.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { validationError } from "./field-errors.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

type BatchHandlers = Pick<
  RouteHandlers,
  "submitBatch" | "listBatches" | "getBatch" | "cancelBatch"
>;

export const batchHandlers: BatchHandlers = {
  async submitBatch(context, input) {
    const { caller, body } = input;
    if (body.revision?.recordBaseline) requireScope(caller, "baselines:write");
    if (body.report) checkReportAllowed(context, caller, body.report);
    const { report: asked, ...request } = body;
    const report = asked && { settings: asked.github, request };
    const { created, replayed, headers } = await createIdempotently<Batch>(context, input, {
      schema: batchSchema,
      create: async (answered) => {
        const createdBy = createdByCaller(caller);
        return createBatch(context, caller.project, { request, report, answered, createdBy });
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
    return { status: 200, json: await records.batches.list(caller.project, query) };
  },

  async getBatch({ records }, { caller, params }) {
    const batch = await records.batches.find(caller.project, params.id);
    if (!batch) throw notFoundError("batch", params.id);
    return { status: 200, json: batch };
  },

  async cancelBatch({ records }, { caller, params }) {
    const batch = await records.batches.cancel(caller.project, params.id);
    if (!batch) throw notFoundError("batch", params.id);
    return { status: batch.status === "Cancelled" ? 200 : 202, json: batch };
  },
};

/** @throws ServiceError validation_failed */
function checkReportAllowed(
  { github }: ServerContext,
  caller: Caller,
  report: NonNullable<BatchRequest["report"]>,
): void {
  const { repository } = report.github;
  if (!github) {
    const message = "Cannot be had: this service has no GitHub App in its settings";
    throw validationError([{ pointer: "/report/github", message }]);
  }
  if (caller.repository !== null && caller.repository.toLowerCase() !== repository.toLowerCase()) {
    const message = `Must be "${caller.repository}", whose workflow the access token was given to`;
    throw validationError([{ pointer: "/report/github/repository", message }]);
  }
}
