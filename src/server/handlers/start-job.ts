import { createHash } from "node:crypto";
import type { z } from "zod";
import { resolveJobs } from "./resolve-jobs.ts";
import type { Caller } from "../../auth/authenticate.ts";
import { seal, unseal } from "../../auth/sealed-text.ts";
import { newId } from "../../contract/id.ts";
import type { CreatedBy } from "../../contract/jobs/creation.ts";
import { type Job, job as jobSchema, type JobRequest } from "../../contract/jobs/job.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import { creationOwner } from "../../contract/people/principal.ts";
import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import type { AuditedChange } from "../../records/people/add-audit-entry.ts";
import type { IdempotencyRef, IdempotentAnswer } from "../../records/people/record-creation.ts";
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

interface IdempotentRequest {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: unknown;
}

interface Creation<T> {
  /** Of what is created, as the response contains it. */
  readonly schema: z.ZodType<T>;
  readonly create: (answered: IdempotentAnswer<T> | undefined) => Promise<T>;
}

interface Created<T> {
  readonly created: T;
  /** Whether an earlier request with the same Idempotency-Key created it. */
  readonly replayed: boolean;
  readonly headers: { readonly "idempotency-replayed"?: "true" };
}

/**
 * Creates what a request asks for, once for each Idempotency-Key. The response is stored sealed
 * with the caller's secret, since it can contain one that the service must not know afterwards.
 */
export async function createIdempotently<T>(
  { records }: ServerContext,
  { caller, request, headers, body }: IdempotentRequest,
  { schema, create }: Creation<T>,
): Promise<Created<T>> {
  const key = headers["idempotency-key"];
  if (key === undefined) return { created: await create(undefined), replayed: false, headers: {} };
  const ref: IdempotencyRef = { project: caller.project, tokenId: caller.id, key };
  const stored = await records.idempotency.begin(ref, requestHash(request, body));
  if (stored !== undefined) {
    const created = schema.parse(JSON.parse(unseal(stored, caller.secret)));
    return { created, replayed: true, headers: { "idempotency-replayed": "true" } };
  }
  const buildAnswer = (created: T) => seal(JSON.stringify(created), caller.secret);
  try {
    return { created: await create({ ref, buildAnswer }), replayed: false, headers: {} };
  } catch (error) {
    // Where that fails too, the end of the request frees its key.
    await records.idempotency.abandon(ref).catch(() => {});
    throw error;
  } finally {
    records.idempotency.end(ref);
  }
}

function requestHash(request: Request, body: unknown): string {
  const text = [request.method, new URL(request.url).pathname, JSON.stringify(body)].join("\n");
  return createHash("sha256").update(text).digest("hex");
}

export function createdByCaller({ tokenId, name }: Caller): NonNullable<CreatedBy> {
  return { tokenId, name };
}
