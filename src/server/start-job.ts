import type { Caller } from "../auth/authenticate.ts";
import { newId } from "../contract/id.ts";
import { type Job, job as jobSchema, type JobRequest } from "../contract/jobs/job.ts";
import { creationOwner } from "../contract/people/principal.ts";
import type { JobKind } from "../contract/jobs/status.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";
import type { NewJob } from "../records/jobs/insert-jobs.ts";
import { createdByCaller } from "./created-by.ts";
import { type Created, createIdempotently } from "./create-idempotently.ts";
import { resolveJobs } from "./resolve-jobs.ts";
import type { ServerContext } from "./server-context.ts";
import { requestSpan } from "./trace-requests.ts";

interface StartInput {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: JobRequest;
  readonly audit: AuditedChange;
}

/** Creates the job of a request and submits it to the executor, once for each Idempotency-Key. */
export async function startJob(
  context: ServerContext,
  kind: JobKind,
  input: StartInput,
): Promise<Created<Job>> {
  const { records, executor } = context;
  const started = await createIdempotently<Job>(context, input, {
    schema: jobSchema,
    async create(answered) {
      await context.requireSpace();
      const resolved = await resolveJob(context, kind, input);
      const createdBy = createdByCaller(input.caller);
      const traceparent = requestSpan(input.request)?.traceparent;
      const { project } = input.caller;
      const newJob = withJobResource(context, project, { ...resolved, createdBy, traceparent });
      return records.jobs.create(project, newJob, {
        answered,
        audit: input.audit,
      });
    },
  });
  if (!started.replayed) executor.submit(input.caller.project, [started.created.id]);
  return started;
}

async function resolveJob(
  context: ServerContext,
  kind: JobKind,
  { caller, body: { model, target, ...fields } }: StartInput,
): Promise<NewJob> {
  const [newJob] = await resolveJobs(context, {
    ...fields,
    owner: creationOwner(caller),
    kind,
    models: [{ value: model, pointer: "/model" }],
    targets: [{ value: target, pointer: "/target" }],
  });
  if (!newJob) throw new TypeError("One model and one target made no job");
  return newJob;
}

/** In a cluster a job is a custom resource of its name, which the executor creates later. */
function withJobResource(
  { executor, now }: ServerContext,
  project: string,
  newJob: NewJob,
): NewJob {
  const namespace = executor.projectNamespace?.(project);
  if (namespace === undefined) return newJob;
  const at = now();
  const id = newId("job", at);
  const resource = { namespace, name: id, uid: null };
  return { ...newJob, id, createdAt: at.toISOString(), resource };
}
