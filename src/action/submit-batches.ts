import * as core from "@actions/core";
import type { BatchPlan } from "./plan-batch.ts";
import { retryWhileUnreachable } from "./retry-while-unreachable.ts";
import type { ServiceClient } from "./service-client.ts";
import { InputError } from "./explain-error.ts";
import { digest, type StepIdentity } from "./workflow-run.ts";
import { ProblemError } from "../client/problem-error.ts";
import { type Batch, type BatchRequest, groupByTargets } from "../contract/batches/batch.ts";
import { comparesWithBaseline } from "../contract/jobs/gate.ts";
import type { Job } from "../contract/jobs/job.ts";
import type { JobQuery } from "../contract/jobs/job-lists.ts";
import { listDataSources } from "../contract/jobs/recipe-data.ts";
import type { ModelReference } from "../contract/models/model.ts";
import { findUploadHash } from "../contract/models/model-source.ts";
import type { Revision } from "../contract/revision.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { redactSource } from "../contract/text/redact-source.ts";

/** A job of the step: one model for one target. */
export interface StepJob {
  readonly id: string;
  readonly model: string;
  readonly target: string;
  /** The job itself where an earlier run completed it. */
  readonly former?: Job;
}

export interface Submission {
  readonly batches: readonly Batch[];
  /** In the order of models × targets. */
  readonly jobs: readonly StepJob[];
}

interface StepRequest {
  readonly plan: BatchPlan;
  /** The plan's models, as the service has them. */
  readonly models: readonly ModelReference[];
  readonly identity: StepIdentity;
  readonly attempt: number;
  readonly revision: Revision | undefined;
  /** For the service to write the check runs instead of the step. */
  readonly report: BatchRequest["report"];
  readonly signal: AbortSignal;
}

interface StepPair {
  readonly model: ModelReference;
  readonly target: string;
  readonly former: Job | undefined;
}

/**
 * Submits the jobs of the step, except those that an earlier run completed with all gates passed:
 * of the same bytes, for the same request, compared with the same commit.
 */
export async function submitBatches(
  client: ServiceClient,
  request: StepRequest,
): Promise<Submission> {
  const { plan, models, identity, signal } = request;
  const contentLabel = { "github-request": digest([plan.fields, request.revision?.base]) };
  const former = await listReusableJobs(client, request, contentLabel);
  const pairs = models.flatMap((model) =>
    plan.targets.map((target) => ({ model, target, former: findFormerJob(former, model, target) })),
  );
  core.saveState("submitted", "true");
  const batches: Batch[] = [];
  for (const group of groupByTargets(pairs.filter((pair) => pair.former === undefined))) {
    const body = {
      name: identity.checkName,
      ...plan.fields,
      models: group.models,
      targets: group.targets,
      revision: request.revision,
      report: request.report,
      labels: { ...plan.fields.labels, ...identity.labels, ...contentLabel },
    };
    const batch = await submitPlannedBatch(client, body, signal).catch((error: unknown) => {
      throw explainRefusal(error, plan, body);
    });
    batches.push(batch);
  }
  return { batches, jobs: stepJobs(pairs, batches) };
}

async function listReusableJobs(
  client: ServiceClient,
  { attempt, report, revision, identity, signal }: StepRequest,
  contentLabel: Readonly<Record<string, string>>,
): Promise<Job[]> {
  // The service reports on one whole batch.
  if (report !== undefined) return [];
  // A commit whose results become baselines has jobs of its own.
  if (!revision?.recordBaseline) {
    return listPassedJobs(client, { ...identity.stepLabel, ...contentLabel }, signal);
  }
  const labels = { ...identity.runLabels, ...contentLabel };
  return attempt === 1 ? [] : listPassedJobs(client, labels, signal);
}

function stepJobs(pairs: readonly StepPair[], batches: readonly Batch[]): StepJob[] {
  const submitted = batches.flatMap((batch) => batch.jobs);
  return pairs.flatMap(({ model: { name = "" }, target, former }): StepJob[] => {
    if (former) return [{ id: former.id, model: name, target, former }];
    const job = submitted.find((one) => one.model === name && one.target === target);
    return job ? [{ id: job.id, model: name, target }] : [];
  });
}

/** Submits a batch, which records no baseline where the token does not allow it. */
async function submitPlannedBatch(
  client: ServiceClient,
  body: BatchRequest,
  signal: AbortSignal,
): Promise<Batch> {
  const batch = await submitIdempotently(client, body, signal).catch(async (error: unknown) => {
    const isRefused = error instanceof ProblemError && error.problem.code === "missing_scope";
    if (!isRefused || !body.revision?.recordBaseline) throw error;
    core.notice(
      "The results are not recorded as a baseline: the token lacks the scope baselines:write",
    );
    const revision = { ...body.revision, recordBaseline: false };
    return submitIdempotently(client, { ...body, revision }, signal);
  });
  core.info(`Batch ${batch.id}: ${formatCount(batch.jobs.length, "job")}`);
  return batch;
}

/** A refusal of fields with the lines of the workspace that say them. */
function explainRefusal(error: unknown, plan: BatchPlan, { models }: BatchRequest): unknown {
  const refused = error instanceof ProblemError ? (error.problem.errors ?? []) : [];
  if (refused.length === 0) return error;
  const problems = refused.map(({ pointer, message }) => {
    const path = pointer.split("/").slice(1);
    const model = path[0] === "models" ? models[Number(path[1])] : undefined;
    const place = model
      ? plan.places.models.find((each) => each.model === model.name)
      : plan.placeOf(path);
    const parts = ["The service refuses the batch", pointer, message];
    return { message: parts.filter((part) => part !== "").join(": "), place };
  });
  return new InputError(problems, { cause: error });
}

/** Creates no second batch when repeated. The body's labels make the key unique to the step. */
async function submitIdempotently(
  client: ServiceClient,
  body: BatchRequest,
  signal: AbortSignal,
): Promise<Batch> {
  const headers = { "idempotency-key": digest(body) };
  return retryWhileUnreachable(async () => client.call("submitBatch", { headers, body }), signal);
}

/**
 * Jobs with the labels that completed, whose results are there, with all gates passed: one that
 * warns may pass next time.
 */
async function listPassedJobs(
  client: ServiceClient,
  labels: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Job[]> {
  const filter = { labels, status: ["Completed" as const] };
  const jobs = await retryWhileUnreachable(async () => listJobs(client, filter, signal), signal);
  return jobs.filter((job) => job.gates.every(({ passed }) => passed) && hasFiles(job));
}

/** The service deletes results by their age, and has none that a restored backup lacks. */
function hasFiles({ artifacts }: Job): boolean {
  return artifacts.length > 0 && artifacts.every(({ missing }) => missing !== true);
}

/** The job that compressed the very same model for the target. */
function findFormerJob(
  jobs: readonly Job[],
  model: ModelReference,
  target: string,
): Job | undefined {
  const { name, source, sha256 } = model;
  // What a URL gives, model or data, may have changed since.
  if (findUploadHash(source) === undefined && sha256 === undefined) return undefined;
  return jobs.find(
    (job) =>
      job.target === target &&
      listDataSources(job.recipe).every((data) => findUploadHash(data) !== undefined) &&
      job.model.name === name &&
      job.model.source === redactSource(source) &&
      job.model.sha256 === sha256 &&
      wasComparedWithBase(job),
  );
}

/** A job that was compared with another commit is again once the base has a result of its own. */
function wasComparedWithBase({ gateLimits, baseline }: Job): boolean {
  return !comparesWithBaseline(gateLimits) || baseline?.by === "baseSha";
}

/** Batches by their ids, as they are now. */
export async function getBatches(
  client: ServiceClient,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Batch[]> {
  return Promise.all(
    ids.map(async (id) => client.call("getBatch", { params: { id } }, { signal })),
  );
}

interface JobFilter {
  readonly batch?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly status?: JobQuery["status"];
}

/** All pages of the jobs that match the filter, newest first. */
export async function listJobs(
  client: ServiceClient,
  { labels, ...filter }: JobFilter,
  signal?: AbortSignal,
): Promise<Job[]> {
  const label = labels && Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const jobs: Job[] = [];
  const pages = client.listPages("listJobs", { query: { ...filter, label } }, signal && { signal });
  for await (const page of pages) jobs.push(...page.jobs);
  return jobs;
}
