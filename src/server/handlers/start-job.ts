import { findCreated, readIdempotency, replayedHeaders } from "./idempotency.ts";
import { resolveJobs } from "./resolve-jobs.ts";
import type { Caller } from "../../auth/authenticate.ts";
import { newId } from "../../contract/id.ts";
import type { CreatedBy } from "../../contract/jobs/creation.ts";
import { type Job, job as jobSchema, type JobRequest } from "../../contract/jobs/job.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import { creationOwner } from "../../contract/people/principal.ts";
import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import type { AuditedChange } from "../../records/people/add-audit-entry.ts";
import { requestSpan } from "../http/request-id.ts";
import type { ServerContext } from "../http/server-context.ts";

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
): Promise<{ created: Job; headers: { "idempotency-replayed"?: "true" } }> {
  const { records, executor } = context;
  const { caller, audit } = input;
  const idempotency = readIdempotency(input);
  const earlier = await findCreated(records, idempotency, jobSchema);
  if (earlier) return { created: earlier, headers: replayedHeaders };
  await context.requireSpace();
  const newJob = await resolveJob(context, kind, input);
  const created = await records.jobs.create(caller.project, newJob, { idempotency, audit });
  executor.submit(caller.project, [created.id]);
  return { created, headers: {} };
}

async function resolveJob(
  context: ServerContext,
  kind: JobKind,
  { caller, request, body: { model, target, ...fields } }: StartInput,
): Promise<NewJob> {
  const [resolved] = await resolveJobs(context, {
    ...fields,
    owner: creationOwner(caller),
    kind,
    models: [{ value: model, pointer: "/model" }],
    targets: [{ value: target, pointer: "/target" }],
  });
  if (!resolved) throw new TypeError("One model and one target made no job");
  const createdBy = createdByCaller(caller);
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

export function createdByCaller({ tokenId, name }: Caller): NonNullable<CreatedBy> {
  return { tokenId, name };
}
