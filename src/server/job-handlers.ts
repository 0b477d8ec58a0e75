import { hasScope, reachedOrigin } from "../contract/people/may.ts";
import type { JobPage, JobSummaryPage } from "../contract/jobs/page.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { getJob } from "./get-job.ts";
import { JsonText } from "./json-text.ts";
import { notFoundError } from "./not-found-error.ts";
import { readPreferredWait } from "./read-preferred-wait.ts";
import { requireRecorded } from "./require-recorded.ts";
import { retryJob } from "./retry-job.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import { showJobText } from "./show-job-text.ts";
import { showJob } from "./show-job.ts";
import { startJob } from "./start-job.ts";
import { waitForJobEnd } from "./wait-for-job-end.ts";

type JobHandlers = Pick<
  RouteHandlers,
  | "startCompression"
  | "startQuantization"
  | "listJobs"
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
    const job = await waitForJobEnd(context, input.caller, { job: started.created, signal });
    const applied = { ...headers, "preference-applied": `wait=${seconds}` };
    return { status: isTerminal(job.status) ? 200 : 202, json: showJob(job), headers: applied };
  },

  async listJobs({ records }, { caller, query }) {
    const origin = reachedOrigin(caller, "readWork");
    const { documents, nextCursor } = await records.jobs.list(caller.project, query, origin);
    // A summary has nothing that answers leave out.
    const shown = query.view === "summary" ? documents : documents.map(showJobText);
    const jobs = shown.flatMap((text, i) => (i === 0 ? [text] : [",", text]));
    const pieces = [`{"jobs":[`, ...jobs, `],"nextCursor":${JSON.stringify(nextCursor)}}`];
    return { status: 200, json: new JsonText<JobPage | JobSummaryPage>(pieces) };
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
