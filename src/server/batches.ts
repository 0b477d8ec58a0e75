import { type Batch, batch as batchSchema, type BatchRequest } from "../contract/batch.ts";
import { createOnce } from "./create-once.ts";
import { newJobs } from "./new-jobs.ts";
import { notFound } from "./not-found.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

type BatchHandlers = Pick<Handlers, "submitBatch" | "listBatches" | "getBatch" | "cancelBatch">;

export function batchHandlers(context: ServerContext): BatchHandlers {
  const { records, executor } = context;
  return {
    async submitBatch(input) {
      const { caller, body } = input;
      const { created, replayed, headers } = await createOnce<Batch>(context, input, {
        schema: batchSchema,
        async create(answered) {
          return records.batches.create(caller.project, await newBatch(context, body), answered);
        },
      });
      if (!replayed) executor.submit(created.jobs.map((job) => job.id));
      return { status: 202, json: created, headers: { location: `/v1/batches/${created.id}`, ...headers } };
    },

    async listBatches({ caller, query }) {
      return { status: 200, json: await records.batches.list(caller.project, query) };
    },

    async getBatch({ caller, params }) {
      const batch = await records.batches.find(caller.project, params.id);
      if (!batch) throw notFound("batch", params.id);
      return { status: 200, json: batch };
    },

    async cancelBatch({ caller, params }) {
      const batch = await records.batches.cancel(caller.project, params.id);
      if (!batch) throw notFound("batch", params.id);
      return { status: batch.status === "Cancelled" ? 200 : 202, json: batch };
    },
  };
}

async function newBatch(context: ServerContext, { models, targets, ...body }: BatchRequest) {
  const { name, suite, kind, failFast, labels = {}, recipe, gates, dryRun } = body;
  const jobs = await newJobs(context, {
    kind,
    recipe,
    gates,
    dryRun,
    labels,
    models: models.map((value, i) => ({ value, pointer: `/models/${i}` })),
    targets: targets.map((value, i) => ({ value, pointer: `/targets/${i}` })),
  });
  const counted = `${models.length} ${models.length === 1 ? "model" : "models"} for ${targets.join(", ")}`;
  const fallbackName = (suite ?? counted).slice(0, 200);
  return { name: name ?? fallbackName, suite: suite ?? null, kind, failFast, labels, jobs };
}
