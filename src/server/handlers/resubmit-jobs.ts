import type { RetriedBatch } from "../../contract/routes/batch-routes.ts";
import { type BatchRequest, groupByTargets } from "../../contract/batches/batch.ts";
import type { CreatedBy } from "../../contract/jobs/creation.ts";
import type { Owner } from "../../contract/people/principal.ts";
import type { RepeatableJob } from "../../records/jobs/batch-records.ts";
import type { CreatingRequest } from "../../records/people/idempotency-records.ts";
import type { ReportRecord } from "../../records/jobs/insert-report.ts";
import { prepareBatch } from "./create-batch.ts";
import type { ServerContext } from "../http/server-context.ts";

/** What the new batches have in common with the one whose jobs they repeat. */
export type RepeatedBatch = Pick<
  BatchRequest,
  "name" | "suite" | "revision" | "kind" | "failFast" | "labels" | "parallelism"
>;

/**
 * Submits jobs again, each with its own recipe: a batch for jobs of the same recipe whose models
 * and targets make up a product.
 * @throws ServiceError for everything in the jobs that the service cannot do
 */
export async function resubmitJobs(
  context: ServerContext,
  owner: Owner,
  {
    batch,
    jobs,
    report,
    createdBy,
    traceparent,
    ...creating
  }: CreatingRequest & {
    readonly batch: RepeatedBatch;
    /** Jobs that have ended. */
    readonly jobs: readonly RepeatableJob[];
    /** The report in which the new jobs replace them. */
    readonly report?: Pick<ReportRecord, "id" | "jobIds"> | undefined;
    /** Absent where the service itself submits jobs again. */
    readonly createdBy?: CreatedBy | undefined;
    /** Of the request's span, where requests are traced. */
    readonly traceparent?: string | undefined;
  },
): Promise<RetriedBatch> {
  const prepared = groupRepeatedJobs(jobs).map(({ former, ...fields }) =>
    prepareBatch(context, owner, {
      request: { ...batch, ...fields },
      report: report && replaceInReport(report, former),
      createdBy,
      traceparent,
    }),
  );
  const newBatches = await Promise.all(prepared);
  const created = await context.records.batches.createAll(owner.project, newBatches, creating);
  const jobIds = created.batches.flatMap((each) => each.jobs.map(({ id }) => id));
  context.executor.submit(owner.project, jobIds);
  return created;
}

function groupRepeatedJobs(jobs: readonly RepeatableJob[]) {
  const byFields = Map.groupBy(jobs, (job) => JSON.stringify(commonFields(job)));
  return [...byFields.values()].flatMap((alike) =>
    groupByTargets(pairModels(alike)).flatMap(({ models, targets, pairs }) => {
      const former = pairs.map(({ job }) => job);
      return former.slice(0, 1).map((job) => ({ ...commonFields(job), models, targets, former }));
    }),
  );
}

/** What all jobs of a batch that is a product of models and targets have in common. */
function commonFields({ recipe, gateLimits: gates, dryRun, deadlineSeconds }: RepeatableJob) {
  return { recipe, gates, dryRun, deadlineSeconds };
}

interface Pair {
  readonly model: BatchRequest["models"][number];
  readonly target: string;
  readonly job: RepeatableJob;
}

/** Pairs with one object for each model: a model that a batch names twice has two. */
function pairModels(jobs: readonly RepeatableJob[]): Pair[] {
  const models = new Map<string, Pair["model"]>();
  const named = new Map<string, number>();
  return jobs.map((job) => {
    const { source, sha256, name } = job.model;
    const text = JSON.stringify([source, sha256, name]);
    const pair = `${text} ${job.target}`;
    const times = (named.get(pair) ?? 0) + 1;
    named.set(pair, times);
    const key = `${text} ${times}`;
    const model = models.get(key) ?? { source, sha256, name };
    models.set(key, model);
    return { model, target: job.target, job };
  });
}

function replaceInReport(
  { id, jobIds }: Pick<ReportRecord, "id" | "jobIds">,
  former: readonly RepeatableJob[],
) {
  return {
    repeats: id,
    positions: former.map((job) => jobIds.indexOf(job.id)),
  };
}
