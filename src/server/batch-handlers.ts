import {
  type Batch,
  batch as batchSchema,
  batchName,
  type BatchRequest,
} from "../contract/batch.ts";
import { batchChildName, newId } from "../contract/id.ts";
import type { NewBatch } from "../records/insert-batch.ts";
import type { IdempotentAnswer } from "../records/idempotency-records.ts";
import type { NewJob } from "../records/insert-jobs.ts";
import type { NewReport } from "../records/insert-report.ts";
import { type Caller, requireScope } from "../auth/authenticate.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { validationError } from "./field-errors.ts";
import { resolveJobs } from "./resolve-jobs.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

type BatchHandlers = Pick<
  RouteHandlers,
  "submitBatch" | "listBatches" | "getBatch" | "cancelBatch"
>;

export function batchHandlers(context: ServerContext): BatchHandlers {
  const { records, executor } = context;
  return {
    async submitBatch(input) {
      const { caller, body } = input;
      if (body.revision?.recordBaseline) requireScope(caller, "baselines:write");
      if (body.report) checkReportAllowed(context, caller, body.report);
      const { created, replayed, headers } = await createIdempotently<Batch>(context, input, {
        schema: batchSchema,
        async create(answered) {
          const { report, ...request } = body;
          const asked = report && { settings: report.github, request };
          return createBatch(context, caller.project, { request, report: asked, answered });
        },
      });
      if (!replayed) executor.submit(created.jobs.map((job) => job.id));
      return {
        status: 202,
        json: created,
        headers: { location: `/v1/batches/${created.id}`, ...headers },
      };
    },

    async listBatches({ caller, query }) {
      return { status: 200, json: await records.batches.list(caller.project, query) };
    },

    async getBatch({ caller, params }) {
      const batch = await records.batches.find(caller.project, params.id);
      if (!batch) throw notFoundError("batch", params.id);
      return { status: 200, json: batch };
    },

    async cancelBatch({ caller, params }) {
      const batch = await records.batches.cancel(caller.project, params.id);
      if (!batch) throw notFoundError("batch", params.id);
      return { status: batch.status === "Cancelled" ? 200 : 202, json: batch };
    },
  };
}

interface BatchSubmission {
  readonly request: Omit<BatchRequest, "report">;
  readonly report: NewReport | undefined;
  readonly answered?: IdempotentAnswer<Batch> | undefined;
}

/** Makes a batch and has it worked on. */
export async function submitBatch(
  context: ServerContext,
  project: string,
  order: BatchSubmission,
): Promise<void> {
  const { jobs } = await createBatch(context, project, order);
  context.executor.submit(jobs.map(({ id }) => id));
}

async function createBatch(
  context: ServerContext,
  project: string,
  { request, report, answered }: BatchSubmission,
): Promise<Batch> {
  const batch = withBatchResource(context, await resolveBatch(context, request), request);
  return context.records.batches.create(project, report ? { ...batch, report } : batch, answered);
}

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

async function resolveBatch(
  context: ServerContext,
  { models, targets, ...body }: BatchSubmission["request"],
): Promise<NewBatch> {
  const {
    name,
    suite,
    revision,
    kind,
    failFast,
    labels = {},
    recipe,
    gates,
    dryRun,
    deadlineSeconds,
  } = body;
  const jobs = await resolveJobs(context, {
    kind,
    recipe,
    gates,
    dryRun,
    deadlineSeconds,
    labels,
    models: models.map((value, i) => ({ value, pointer: `/models/${i}` })),
    targets: targets.map((value, i) => ({ value, pointer: `/targets/${i}` })),
  });
  if (revision !== undefined)
    requireDistinctModelNames(jobs.filter((_, i) => i % targets.length === 0));
  const displayName = batchName({ name, suite, models, targets });
  return {
    name: displayName,
    suite: suite ?? null,
    revision: revision ?? null,
    kind,
    failFast,
    labels,
    jobs,
  };
}

/** Baselines are found by the names of models. */
function requireDistinctModelNames(jobs: readonly Pick<NewJob, "model">[]): void {
  const names = jobs.map(({ model }) => model.name);
  const fields = names.flatMap((name, i) => {
    const message = `must differ from the other models' names to be compared over time, and "${name}" does not`;
    return names.indexOf(name) < i ? [{ pointer: `/models/${i}/name`, message }] : [];
  });
  if (fields.length > 0) throw validationError(fields);
}

/** In a cluster the batch will be held by a custom resource that is named after it, and its jobs by resources that it owns. */
function withBatchResource(
  { executor: { namespace }, now }: ServerContext,
  batch: NewBatch,
  spec: BatchSubmission["request"],
): NewBatch {
  if (namespace === undefined) return batch;
  const at = now();
  const id = newId("batch", at);
  const createdAt = at.toISOString();
  const jobs = batch.jobs.map((job, i) => {
    return { ...job, createdAt, resource: { namespace, name: batchChildName(id, i), uid: null } };
  });
  return { ...batch, id, createdAt, jobs, resource: { namespace, name: id, uid: null, spec } };
}
