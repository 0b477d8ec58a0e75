import { createHash } from "node:crypto";
import { createOnce } from "./idempotency.ts";
import { requireJob, requireRecorded } from "./require-job.ts";
import { resolveJobs } from "./resolve-jobs.ts";
import { showJob, showJobText } from "./show-job.ts";
import type { Caller } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import { newId } from "../../contract/id.ts";
import {
  type Job,
  type JobDetail,
  job as jobSchema,
  type JobRequest,
} from "../../contract/jobs/job.ts";
import type { JobPage, JobSummaryPage } from "../../contract/jobs/job-lists.ts";
import { isTerminal, type JobKind, type JobStatus } from "../../contract/jobs/status.ts";
import { limits } from "../../contract/limits.ts";
import { hasScope, reachedOrigin } from "../../contract/people/may.ts";
import { creationOwner } from "../../contract/people/principal.ts";
import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import { type AuditedChange, findRequester } from "../../records/people/audit-records.ts";
import type { CreatingRequest } from "../../records/people/idempotency-records.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { isETagMatch, JsonText } from "../http/build-response.ts";
import { notFoundError } from "../http/problem-response.ts";
import { linkFormerTrace, requestSpan } from "../http/request-id.ts";
import type { ServerContext } from "../http/server-context.ts";

/** Starts a job that has ended again: the same model, target, recipe, gates and labels. */
const retryJob: RouteHandlers["retryJob"] = async (context, input) => {
  const { caller, params } = input;
  const former = await requireJob(context.records, caller, params.id);
  const { id, kind, status } = former;
  if (!isTerminal(status)) {
    throw new ServiceError("job_unfinished", `Job "${id}" cannot be tried again: it is ${status}`);
  }
  await linkFormerTrace(context, input.request, id);
  const body = buildRetryRequest(former);
  const { job, headers } = await startJob(context, kind, { ...input, body });
  return { status: 202, json: showJob(job), headers };
};

/** The request that gives the same job: its recipe is complete, and nothing is laid under it. */
function buildRetryRequest({ model, ...job }: Job): JobRequest {
  const { source, sha256, name: modelName } = model;
  const { name, target, recipe, gateLimits: gates, dryRun, deadlineSeconds, labels } = job;
  const reference = { source, sha256, name: modelName };
  return { name, model: reference, target, recipe, gates, dryRun, deadlineSeconds, labels };
}

type JobHandlers = Pick<
  RouteHandlers,
  | "startCompression"
  | "startQuantization"
  | "listJobs"
  | "listJobSummaries"
  | "countJobs"
  | "cancelJob"
  | "retryJob"
  | "deleteJob"
>;

export const jobHandlers: JobHandlers = {
  async startCompression(context, input) {
    const { job, headers } = await startJob(context, "compress", input);
    return { status: 202, json: showJob(job), headers };
  },

  async startQuantization(context, input) {
    const { job: started, headers } = await startJob(context, "quantize", input);
    const seconds = readPreferredWait(input.headers.prefer);
    if (seconds === undefined) return { status: 202, json: showJob(started), headers };
    const signal = AbortSignal.any([input.request.signal, AbortSignal.timeout(seconds * 1000)]);
    const job = await waitForJobEnd(context, input.caller, started, signal);
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

interface StartInput {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: JobRequest;
  readonly audit: AuditedChange;
}

interface StartedJob {
  readonly job: Job;
  readonly headers: { readonly location: string; readonly "idempotency-replayed"?: "true" };
}

/** Creates the job of a request and submits it to the executor, once for each Idempotency-Key. */
async function startJob(
  context: ServerContext,
  kind: JobKind,
  input: StartInput,
): Promise<StartedJob> {
  const { records, executor } = context;
  const { caller, audit } = input;
  const create = async (idempotency: CreatingRequest["idempotency"]) => {
    await context.requireSpace();
    const newJob = await resolveJob(context, kind, input);
    const job = await records.jobs.create(caller.project, newJob, { idempotency, audit });
    executor.submit(caller.project, [job.id]);
    return job;
  };
  const { created: job, headers } = await createOnce(records, input, jobSchema, create);
  return { job, headers: { location: `/v1/jobs/${job.id}`, ...headers } };
}

async function resolveJob(
  context: ServerContext,
  kind: JobKind,
  { caller, request, body: { model, target, ...fields }, audit }: StartInput,
): Promise<NewJob> {
  const [resolved] = await resolveJobs(context, {
    ...fields,
    owner: creationOwner(caller),
    kind,
    models: [{ value: model, pointer: "/model" }],
    targets: [{ value: target, pointer: "/target" }],
  });
  if (!resolved) throw new TypeError("One model and one target made no job");
  const createdBy = findRequester(audit);
  const traceparent = requestSpan(request)?.traceparent;
  const newJob = { ...resolved, createdBy, traceparent };
  const namespace = context.executor.projectNamespace?.(caller.project);
  if (namespace === undefined) return newJob;
  // In a cluster a job is a custom resource of its name, which the executor creates later.
  const at = context.now();
  const id = newId("job", at);
  const resource = { namespace, name: id, uid: null };
  return { ...newJob, id, createdAt: at.toISOString(), resource };
}

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
  for await (const _ of records.changes.watch(job.id, signal)) {
    const status = await records.jobs.findStatus(job.id);
    if (status === undefined || isTerminal(status)) break;
  }
  return (await records.jobs.find(caller.project, job.id)) ?? job;
}

type GetJob = Pick<RouteHandlers, "getJob">;

/** @returns the handler of `GET /jobs/{id}`, whose readers share what is being read */
export function createGetJob(context: ServerContext): GetJob {
  const readJob = shareReads(context);
  return {
    /** The job now, or as soon as it is what the request prefers to wait for. */
    async getJob({ records }, { caller: { project }, params: { id }, headers, request }) {
      const known = headers["if-none-match"];
      const seconds = readPreferredWait(headers.prefer);
      let shown = await readJob(project, id);
      if (seconds !== undefined) {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(seconds * 1000)]);
        for await (const _ of records.changes.watch(id, signal)) {
          shown = await readJob(project, id);
          const isChanged = known !== undefined && !isETagMatch(known, shown.etag);
          if (isChanged || isTerminal(shown.status)) break;
        }
      }
      const { json, etag } = shown;
      const applied = seconds === undefined ? {} : { "preference-applied": `wait=${seconds}` };
      const answered = { etag, ...applied };
      if (isETagMatch(known, etag)) return { status: 304, headers: answered };
      return { status: 200, json, headers: answered };
    },
  };
}

interface ShownJob {
  readonly project: string;
  readonly status: JobStatus;
  readonly json: JsonText<JobDetail>;
  readonly etag: string;
}

/**
 * Reads jobs. What is read already is shared until the job changes: a thousand requests may wait for
 * one job, and its text may be a megabyte.
 */
function shareReads(context: ServerContext): (project: string, id: string) => Promise<ShownJob> {
  const reading = new Map<string, Promise<ShownJob | undefined>>();
  const { changes } = context.records;
  changes.on("changed", (id) => reading.delete(id));
  changes.onGap(() => reading.clear());
  const begin = (id: string) => {
    const read = readShownJob(context, id).finally(() => {
      if (reading.get(id) === read) reading.delete(id);
    });
    reading.set(id, read);
    return read;
  };
  return async (project, id) => {
    const shown = await (reading.get(id) ?? begin(id));
    if (shown?.project !== project) throw notFoundError("job", id);
    return shown;
  };
}

/** Undefined where there is no such job. */
async function readShownJob(
  { records, executor }: ServerContext,
  id: string,
): Promise<ShownJob | undefined> {
  const found = await records.jobs.findText(id);
  if (found === undefined) return undefined;
  const { project, status, document } = found;
  const position = JSON.stringify(executor.queuePosition(id) ?? null);
  const text = `${showJobText(document).slice(0, -1)},"queuePosition":${position}}`;
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  return { project, status, json: new JsonText<JobDetail>([text]), etag };
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
