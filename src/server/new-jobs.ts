import { type FieldError, ServiceError } from "../contract/errors.ts";
import { effectiveRecipe, findTarget } from "../contract/effective-recipe.ts";
import type { JobRequest } from "../contract/job.ts";
import type { ModelReference } from "../contract/model.ts";
import type { JobKind } from "../contract/status.ts";
import type { NewJob } from "../records/new-job.ts";
import { checkSource } from "./check-source.ts";
import type { ServerContext } from "./server-context.ts";

/** Part of a request that has to be held against what the service has, and where the request names it. */
interface Named<T> {
  readonly value: T;
  readonly pointer: string;
}

interface JobFields extends Pick<JobRequest, "gates" | "labels" | "dryRun" | "deadlineSeconds"> {
  readonly kind: JobKind;
  readonly name?: string | undefined;
}

interface JobsRequest extends JobFields, Pick<JobRequest, "recipe"> {
  readonly models: readonly Named<ModelReference>[];
  readonly targets: readonly Named<string>[];
}

/** The jobs of models × targets, with everything resolved. Everything that the service cannot do is named at once. */
export async function newJobs(context: ServerContext, request: JobsRequest): Promise<NewJob[]> {
  const { recipe = {} } = request;
  const refusals: Refusal[] = [];
  const targets = request.targets.flatMap(({ value, pointer }) => {
    const target = accepted(refusals, pointer, () => findTarget(context.targets, value));
    const effective = target && accepted(refusals, "/recipe/preset", () => effectiveRecipe(target, recipe));
    return target && effective ? { target, recipe: effective } : [];
  });
  const { data } = recipe.evaluation ?? {};
  const sources = [
    ...request.models.map(({ value, pointer }) => ({ value: value.source, pointer: `${pointer}/source` })),
    ...(data === undefined ? [] : [{ value: data, pointer: "/recipe/evaluation/data" }]),
  ];
  const checks = await Promise.allSettled(sources.map(async ({ value }) => checkSource(context, value)));
  checks.forEach((check, i) => {
    if (check.status === "rejected") refusals.push(refusal(sources[i]?.pointer ?? "", check.reason));
  });
  throwRefusals(refusals);
  return request.models.flatMap(({ value }) => targets.map((resolved) => newJob(request, value, resolved)));
}

/** A job of a request, for one of its models and one of its targets. */
export function newJob(
  request: JobFields,
  reference: ModelReference,
  resolved: Pick<NewJob, "target" | "recipe">,
): NewJob {
  const { kind, name, gates = {}, labels = {}, dryRun, deadlineSeconds } = request;
  const model = { ...reference, name: reference.name ?? modelName(reference.source) };
  return {
    ...resolved,
    kind,
    name: name ?? `${model.name} for ${resolved.target.name}`,
    model,
    gateLimits: gates,
    dryRun,
    deadlineSeconds,
    labels,
  };
}

interface Refusal {
  readonly field: FieldError;
  readonly error: ServiceError;
}

function refusal(pointer: string, error: unknown): Refusal {
  if (!(error instanceof ServiceError)) throw error;
  return { field: { pointer, message: error.message }, error };
}

function accepted<T>(refusals: Refusal[], pointer: string, resolve: () => T): T | undefined {
  try {
    return resolve();
  } catch (error) {
    refusals.push(refusal(pointer, error));
    return undefined;
  }
}

function throwRefusals(refusals: readonly Refusal[]): void {
  const [first] = refusals;
  if (!first) return;
  const { code, message } = first.error;
  throw new ServiceError(code, message, { cause: first.error, fields: refusals.map(({ field }) => field) });
}

/** The file's name, or the start of the upload's hash. */
function modelName(source: string): string {
  const name = source.startsWith("upload:sha256:")
    ? source.slice("upload:sha256:".length, "upload:sha256:".length + 12)
    : new URL(source).pathname.split("/").findLast((part) => part !== "");
  const safe = (name ?? "").replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return safe.slice(0, 100) || "model";
}
