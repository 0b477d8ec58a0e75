import { newId } from "../contract/id.ts";
import { type Job, job as jobSchema, type JobRequest } from "../contract/job.ts";
import { isTerminal, type JobKind } from "../contract/status.ts";
import type { NewJob } from "../records/insert-jobs.ts";
import type { Caller } from "../auth/authenticate.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { waitForJobEnd, readPreferredWait } from "./wait-for-job-end.ts";
import { resolveJobs } from "./resolve-jobs.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

type JobHandlers = Pick<
  RouteHandlers,
  "startCompression" | "startQuantization" | "listJobs" | "getJob" | "cancelJob"
>;

export function jobHandlers(context: ServerContext): JobHandlers {
  const { records } = context;
  return {
    async startCompression(input) {
      const { created: job, headers } = await startJob(context, "compress", input);
      return { status: 202, json: job, headers: { location: `/v1/jobs/${job.id}`, ...headers } };
    },

    async startQuantization(input) {
      const started = await startJob(context, "quantize", input);
      const headers = { location: `/v1/jobs/${started.created.id}`, ...started.headers };
      const seconds = readPreferredWait(input.headers.prefer);
      if (seconds === undefined) return { status: 202, json: started.created, headers };
      const signal = AbortSignal.any([input.request.signal, AbortSignal.timeout(seconds * 1000)]);
      const job = await waitForJobEnd(context, input.caller, { job: started.created, signal });
      const applied = { ...headers, "preference-applied": `wait=${seconds}` };
      return { status: isTerminal(job.status) ? 200 : 202, json: job, headers: applied };
    },

    async listJobs({ caller, query }) {
      return { status: 200, json: await records.jobs.list(caller.project, query) };
    },

    async getJob({ caller, params }) {
      const job = await records.jobs.find(caller.project, params.id);
      if (!job) throw notFoundError("job", params.id);
      return { status: 200, json: job };
    },

    async cancelJob({ caller, params }) {
      const job = await records.jobs.cancel(caller.project, params.id);
      if (!job) throw notFoundError("job", params.id);
      return { status: job.status === "Cancelled" ? 200 : 202, json: job };
    },
  };
}

/** In a cluster the job will be held by a custom resource that is named after it. */
function withJobResource({ executor: { namespace }, now }: ServerContext, newJob: NewJob): NewJob {
  if (namespace === undefined) return newJob;
  const at = now();
  const id = newId("job", at);
  return {
    ...newJob,
    id,
    createdAt: at.toISOString(),
    resource: { namespace, name: id, uid: null },
  };
}

interface StartInput {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: JobRequest;
}

async function startJob(context: ServerContext, kind: JobKind, input: StartInput) {
  const { records, executor } = context;
  const { model, target, ...rest } = input.body;
  const started = await createIdempotently<Job>(context, input, {
    schema: jobSchema,
    async create(answered) {
      const [newJob] = await resolveJobs(context, {
        ...rest,
        kind,
        models: [{ value: model, pointer: "/model" }],
        targets: [{ value: target, pointer: "/target" }],
      });
      if (!newJob) throw new TypeError("One model and one target made no job");
      return records.jobs.create(input.caller.project, withJobResource(context, newJob), answered);
    },
  });
  if (!started.replayed) executor.submit([started.created.id]);
  return started;
}
