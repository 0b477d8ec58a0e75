import { type Batch, batchFields } from "../contract/batch.ts";
import { hasScope } from "../contract/may.ts";
import { ServiceError } from "../contract/errors.ts";
import { type RetriedBatch, retriedBatch } from "../contract/batch-routes.ts";
import { creationOwner } from "../contract/principal.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { createdByCaller } from "./created-by.ts";
import { notFoundError } from "./not-found-error.ts";
import { requireOwnSuite } from "./require-own-suite.ts";
import { type RepeatedBatch, resubmitJobs } from "./resubmit-jobs.ts";
import type { RouteHandlers } from "./route-handlers.ts";

/** Starts jobs of a batch anew, by default those that failed. */
export const retryBatch: RouteHandlers["retryBatch"] = async (context, input) => {
  const { caller, params, query, audit } = input;
  const statuses = query.status ?? ["Failed"];
  const found = await context.records.batches.findWithJobs(caller.project, params.id, statuses);
  if (!found) throw notFoundError("batch", params.id);
  const { batch, jobs } = found;
  if (jobs.length === 0) {
    const message = `No job of batch "${batch.id}" is ${statuses.join(" or ")}`;
    throw new ServiceError("nothing_to_retry", message);
  }
  const repeated = describeRepeated(batch);
  if (repeated.revision?.recordBaseline) await requireOwnSuite(context, caller, repeated);
  const report = hasScope(caller, "requestReport")
    ? await context.records.reports.find(batch.id)
    : undefined;
  const { created, headers } = await createIdempotently<RetriedBatch>(
    context,
    { ...input, body: { batch: batch.id, statuses } },
    {
      schema: retriedBatch,
      create: async (answered) => {
        await context.requireSpace();
        const batches = await resubmitJobs(context, creationOwner(caller), {
          batch: repeated,
          jobs,
          report,
          createdBy: createdByCaller(caller),
          audit,
          answered: answered && {
            ref: answered.ref,
            buildAnswer: (all) => answered.buildAnswer({ batches: [...all] }),
          },
        });
        return { batches: [...batches] };
      },
    },
  );
  return { status: 202, json: created, headers };
};

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
