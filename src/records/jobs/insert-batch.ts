import { type ResourceReference, serializeResource } from "./find-record.ts";
import { insertJobs, type NewJob } from "./insert-jobs.ts";
import { insertReport, type NewReport, replaceReportJobs } from "./insert-report.ts";
import { findSuiteRepository, reachesSuite } from "./suite-records.ts";
import { newId } from "../../contract/id.ts";
import {
  type Baseline,
  type RecordedBaseline,
  recordedBaseline,
} from "../../contract/jobs/baseline.ts";
import {
  type Batch,
  type BatchSummary,
  batchSummary,
  zeroCounts,
} from "../../contract/batches/batch.ts";
import type { CreatedBy } from "../../contract/jobs/creation.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import type { Origin } from "../../contract/people/principal.ts";
import type { Revision } from "../../contract/revision.ts";
import type { WriteTransaction } from "../database/store.ts";
import { queueWebhookEvents } from "../deliveries/queue-webhook-events.ts";
import { originColumns } from "../people/owner-records.ts";

export interface NewBatch {
  readonly name: string;
  readonly suite: string | null;
  readonly revision: Revision | null;
  readonly kind: JobKind;
  readonly failFast: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdBy?: CreatedBy;
  /** In the order of models × targets. */
  readonly jobs: readonly NewJob[];
  /** Present where the batch was created as a resource. */
  readonly id?: string;
  readonly createdAt?: string;
  readonly resource?: ResourceReference;
  /** The workflow that it comes from. */
  readonly origin?: Origin | null;
  /** Asks for a report, or replaces jobs in one. */
  readonly report?: NewReport;
}

export async function insertBatch(
  writing: WriteTransaction,
  project: string,
  newBatch: NewBatch,
): Promise<Batch> {
  const summary = pendingSummary(newBatch, writing.now);
  const { id } = summary;
  await insertSummary(writing, summary, { project, ...newBatch });
  const newJobs = await attachBaselines(writing, project, newBatch);
  const jobs = await insertJobs(writing, { project, batchId: id }, newJobs);
  await queueWebhookEvents(writing, project, [summary, ...jobs.map(summarizeJob)]);
  const jobIds = jobs.map((job) => job.id);
  const { report } = newBatch;
  if (report && "settings" in report) {
    await insertReport(writing, { ...report, id, project, jobIds });
  }
  if (report && "repeats" in report) await replaceReportJobs(writing, { ...report, jobIds });
  return { ...summary, jobs: jobs.map(pendingBatchJob) };
}

function pendingSummary(newBatch: NewBatch, now: Date): BatchSummary {
  const { jobs, id = newId("batch", now), createdAt = now.toISOString() } = newBatch;
  return batchSummary.parse({
    ...newBatch,
    id,
    status: "Pending",
    createdAt,
    finishedAt: null,
    counts: { ...zeroCounts, Pending: jobs.length },
    gatesFailed: 0,
  });
}

async function insertSummary(
  { trx }: WriteTransaction,
  summary: BatchSummary,
  { project, resource, origin }: { project: string } & Pick<NewBatch, "resource" | "origin">,
): Promise<void> {
  await trx
    .insertInto("batches")
    .values({
      id: summary.id,
      project,
      status: summary.status,
      suite: summary.suite,
      fail_fast: summary.failFast ? 1 : 0,
      document: JSON.stringify(summary),
      resource: serializeResource(resource),
      ...originColumns(origin),
    })
    .execute();
}

/** The jobs of the batch, each with its baseline. */
async function attachBaselines(
  writing: WriteTransaction,
  project: string,
  { suite, revision, origin = null, jobs }: NewBatch,
): Promise<readonly NewJob[]> {
  if (suite === null || revision === null) return jobs;
  const suiteRepository = await findSuiteRepository(writing.trx, project, suite);
  if (!reachesSuite(origin?.repository ?? null, suiteRepository)) return jobs;
  const baselines = await findBaselines(writing, { project, suite, base: revision.base }, jobs);
  return jobs.map((newJob, i) => ({ ...newJob, baseline: baselines[i] ?? null }));
}

function pendingBatchJob({ id, model, target, status }: Job): Batch["jobs"][number] {
  return { id, model: model.name, target, status, gatesFailed: false };
}

interface Suite {
  readonly project: string;
  readonly suite: string;
}

interface SuiteBranch extends Suite, Pick<RecordedBaseline, "branch"> {}

/** Jobs for the same model and target are compared. */
interface ModelForTarget {
  readonly model: { readonly name: string };
  readonly target: { readonly name: string };
}

/** The baseline of each of the new jobs, in their order. */
async function findBaselines(
  writing: WriteTransaction,
  { base, ...suite }: Suite & Pick<Revision, "base">,
  newJobs: readonly ModelForTarget[],
): Promise<(Baseline | null)[]> {
  if (base === undefined) return newJobs.map(() => null);
  const branch = { ...suite, branch: base.branch };
  const [baseBaselines, mergeBaseBaselines] = await Promise.all([
    listCommitBaselines(writing, branch, base.sha),
    listCommitBaselines(writing, branch, base.mergeBase),
  ]);
  const baselines: (Baseline | null)[] = [];
  for (const newJob of newJobs) {
    const key = baselineKey(newJob.model.name, newJob.target.name);
    const [atBase, atMergeBase] = [baseBaselines.get(key), mergeBaseBaselines.get(key)];
    if (atBase) baselines.push({ ...atBase, by: "baseSha" });
    else if (atMergeBase) baselines.push({ ...atMergeBase, by: "mergeBase" });
    else baselines.push(await findNewestBaseline(writing, branch, newJob));
  }
  return baselines;
}

/** Those that were recorded for the branch: only its workflows can record any. */
async function listCommitBaselines(
  { trx }: WriteTransaction,
  { project, suite, branch }: SuiteBranch,
  sha: string | undefined,
): Promise<ReadonlyMap<string, RecordedBaseline>> {
  if (sha === undefined) return new Map();
  const rows = await trx
    .selectFrom("baselines")
    .select(["model", "target", "document"])
    .where("project", "=", project)
    .where("suite", "=", suite)
    .where("sha", "=", sha)
    .where("branch", "=", branch)
    .orderBy("job_id")
    .execute();
  return new Map(
    rows.map(({ model, target, document }) => [
      baselineKey(model, target),
      parseBaseline(document),
    ]),
  );
}

async function findNewestBaseline(
  { trx }: WriteTransaction,
  { project, suite, branch }: SuiteBranch,
  { model, target }: ModelForTarget,
): Promise<Baseline | null> {
  const row = await trx
    .selectFrom("baselines")
    .select("document")
    .where("project", "=", project)
    .where("suite", "=", suite)
    .where("model", "=", model.name)
    .where("target", "=", target.name)
    .where("branch", "=", branch)
    .orderBy("job_id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : { ...parseBaseline(row.document), by: "branch" };
}

function parseBaseline(document: string): RecordedBaseline {
  return recordedBaseline.parse(JSON.parse(document));
}

/** Names of models and targets contain no slash. */
function baselineKey(model: string, target: string): string {
  return `${model}/${target}`;
}
