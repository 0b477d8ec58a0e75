import { replaceDataSources } from "../../contract/jobs/recipe-data.ts";
import { requireJob, requireRecorded } from "./require-job.ts";
import { startJob } from "./start-job.ts";
import type { Caller } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Job, JobRequest } from "../../contract/jobs/job.ts";
import type { JobPage, JobSummaryPage } from "../../contract/jobs/page.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { limits } from "../../contract/limits.ts";
import { hasScope, reachedOrigin } from "../../contract/people/may.ts";
import { redactSource } from "../../contract/text/redact-source.ts";
import { parseJob } from "../../records/jobs/find-record.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { computeETag, isETagMatch } from "../http/build-response.ts";
import { JsonText } from "../http/json-text.ts";
import { notFoundError } from "../http/problem-response.ts";
import { linkFormerTrace } from "../http/request-id.ts";
import type { ServerContext } from "../http/server-context.ts";

/** Starts a job anew that has ended: the same model, target, recipe, gates and labels. */
const retryJob: RouteHandlers["retryJob"] = async (context, input) => {
  const { caller, params } = input;
  const former = await requireJob(context.records, caller, params.id);
  const { id, kind, status } = former;
  if (!isTerminal(status)) {
    throw new ServiceError("job_unfinished", `Job "${id}" cannot be tried again: it is ${status}`);
  }
  await linkFormerTrace(context, input.request, id);
  const body = buildRetryRequest(former);
  const { created, headers } = await startJob(context, kind, { ...input, body });
  const location = `/v1/jobs/${created.id}`;
  return { status: 202, json: showJob(created), headers: { location, ...headers } };
};

/** The request that gives the same job: its recipe is complete, and nothing is laid under it. */
function buildRetryRequest({ model, ...job }: Job): JobRequest {
  const { source, sha256, name: modelName } = model;
  const { name, target, recipe, gateLimits: gates, dryRun, deadlineSeconds, labels } = job;
  const reference = { source, sha256, name: modelName };
  return { name, model: reference, target, recipe, gates, dryRun, deadlineSeconds, labels };
}

/** The job now, or as soon as it is what the request prefers to wait for. */
const getJob: RouteHandlers["getJob"] = async (context, input) => {
  const { caller, params, headers, request } = input;
  const known = headers["if-none-match"];
  const seconds = readPreferredWait(headers.prefer);
  let shown = await readJobDetail(context, caller, params.id);
  if (seconds !== undefined) {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(seconds * 1000)]);
    for await (const _ of context.records.changes.watch(params.id, signal)) {
      shown = await readJobDetail(context, caller, params.id);
      const isChanged = known !== undefined && !isETagMatch(known, shown.etag);
      if (isChanged || isTerminal(shown.json.status)) break;
    }
  }
  const { json, etag } = shown;
  const applied = seconds === undefined ? {} : { "preference-applied": `wait=${seconds}` };
  const answered = { etag, ...applied };
  if (isETagMatch(known, etag)) return { status: 304, headers: answered };
  return { status: 200, json, headers: answered };
};

async function readJobDetail({ records, executor }: ServerContext, caller: Caller, id: string) {
  const job = await requireJob(records, caller, id);
  const json = { ...showJob(job), queuePosition: executor.queuePosition(job.id) ?? null };
  return { json, etag: computeETag(json) };
}

type JobHandlers = Pick<
  RouteHandlers,
  | "startCompression"
  | "startQuantization"
  | "listJobs"
  | "listJobSummaries"
  | "countJobs"
  | "getJob"
  | "cancelJob"
  | "retryJob"
  | "deleteJob"
>;

export const jobHandlers: JobHandlers = {
  async startCompression(context, input) {
    const { created: job, headers } = await startJob(context, "compress", input);
    return {
      status: 202,
      json: showJob(job),
      headers: { location: `/v1/jobs/${job.id}`, ...headers },
    };
  },

  async startQuantization(context, input) {
    const started = await startJob(context, "quantize", input);
    const headers = { location: `/v1/jobs/${started.created.id}`, ...started.headers };
    const seconds = readPreferredWait(input.headers.prefer);
    if (seconds === undefined) return { status: 202, json: showJob(started.created), headers };
    const signal = AbortSignal.any([input.request.signal, AbortSignal.timeout(seconds * 1000)]);
    const job = await waitForJobEnd(context, input.caller, started.created, signal);
    const applied = { ...headers, "preference-applied": `wait=${seconds}` };
    return { status: isTerminal(job.status) ? 200 : 202, json: showJob(job), headers: applied };
  },

  async listJobs({ records }, { caller, query }) {
    const origin = reachedOrigin(caller, "readWork");
    const { documents, nextCursor } = await records.jobs.list(caller.project, query, origin);
    const jobs = documents.map(showJobText);
    return { status: 200, json: new JsonText<JobPage>(joinPage(jobs, nextCursor)) };
  },

  async listJobSummaries({ records }, { caller, query }) {
    const origin = reachedOrigin(caller, "readWork");
    const { project } = caller;
    const { documents, nextCursor } = await records.jobs.listSummaries(project, query, origin);
    // A summary has nothing that answers leave out.
    return { status: 200, json: new JsonText<JobSummaryPage>(joinPage(documents, nextCursor)) };
  },

  async countJobs({ records }, { caller, query }) {
    const origin = reachedOrigin(caller, "readWork");
    return {
      status: 200,
      json: { counts: await records.jobs.count(caller.project, query, origin) },
    };
  },

  getJob,

  retryJob,

  async cancelJob({ records }, { caller, params, audit }) {
    const job = await records.jobs.cancel(caller.project, params.id, audit);
    if (!job) throw notFoundError("job", params.id);
    return { status: job.status === "Cancelled" ? 200 : 202, json: showJob(job) };
  },

  async deleteJob(context, { caller, params: { id }, audit }) {
    const { records } = context;
    requireRecorded(context, [id]);
    const isDeleted = await records.deletions.deleteJob({
      project: caller.project,
      id,
      audit,
      withBaselines: hasScope(caller, "recordBaselines"),
    });
    if (!isDeleted) throw notFoundError("job", id);
    return { status: 204 };
  },
};

/** The pieces of a page of jobs, which are JSON already. */
function joinPage(documents: readonly string[], nextCursor: string | null): string[] {
  const jobs = documents.flatMap((text, i) => (i === 0 ? [text] : [",", text]));
  return [`{"jobs":[`, ...jobs, `],"nextCursor":${JSON.stringify(nextCursor)}}`];
}

/** The job when it has ended or the signal is aborted. */
async function waitForJobEnd(
  { records }: ServerContext,
  caller: Caller,
  job: Job,
  signal: AbortSignal,
): Promise<Job> {
  let latest = job;
  for await (const _ of records.changes.watch(job.id, signal)) {
    latest = (await records.jobs.find(caller.project, job.id)) ?? latest;
    if (isTerminal(latest.status)) break;
  }
  return latest;
}

const waitPattern = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i;

/**
 * Seconds of `wait=N` in a Prefer header, at most those that the service waits; undefined where the
 * header does not ask to wait.
 */
function readPreferredWait(prefer: string | undefined): number | undefined {
  const [, seconds] = waitPattern.exec(prefer ?? "") ?? [];
  return seconds === undefined ? undefined : Math.min(Number(seconds), limits.preferWaitSeconds);
}

/** A job as answers contain it: a reader need not be able to fetch its sources. */
function showJob(job: Job): Job {
  const { model, recipe } = job;
  return {
    ...job,
    model: { ...model, source: redactSource(model.source) },
    recipe: replaceDataSources(recipe, redactSource),
  };
}

/** An address in a job's document that has user information or a query. */
const addressWithMore = /"(?:source|data)":"https?:(?:[^"\\]|\\.)*[?@]/i;

/** The document of a job as answers contain it: few have to be parsed for that. */
function showJobText(document: string): string {
  const hasMore = includesMark(document) && addressWithMore.test(document);
  return hasMore ? JSON.stringify(showJob(parseJob(document))) : document;
}

/** Found a hundred times faster than an expression. */
function includesMark(document: string): boolean {
  return document.includes("?") || document.includes("@");
}
