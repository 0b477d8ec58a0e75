import { type FieldError, ServiceError } from "../contract/errors.ts";
import { effectiveRecipe, findTarget } from "../contract/effective-recipe.ts";
import type { JobRequest } from "../contract/job.ts";
import type { ModelReference } from "../contract/model.ts";
import type { NewJob } from "../records/insert-jobs.ts";
import { type JobFields, jobFromRequest } from "../records/job-from-request.ts";
import { checkSource } from "./check-source.ts";
import type { ServerContext } from "./server-context.ts";

/** Part of a request that has to be held against what the service has, and where the request names it. */
interface RequestField<T> {
  readonly value: T;
  readonly pointer: string;
}

interface ResolveJobsRequest extends JobFields, Pick<JobRequest, "recipe"> {
  readonly models: readonly RequestField<ModelReference>[];
  readonly targets: readonly RequestField<string>[];
}

/** The jobs of models × targets, with everything resolved. Everything that the service cannot do is named at once. */
export async function resolveJobs(
  context: ServerContext,
  request: ResolveJobsRequest,
): Promise<NewJob[]> {
  const { recipe = {} } = request;
  const refusals: Refusal[] = [];
  const targets = request.targets.flatMap(({ value, pointer }) => {
    const target = collectRefusal(refusals, pointer, () => findTarget(context.targets, value));
    const effective =
      target && collectRefusal(refusals, "/recipe/preset", () => effectiveRecipe(target, recipe));
    return target && effective ? { target, recipe: effective } : [];
  });
  const { data } = recipe.evaluation ?? {};
  const sources = [
    ...request.models.map(({ value, pointer }) => ({
      value: value.source,
      pointer: `${pointer}/source`,
    })),
    ...(data === undefined ? [] : [{ value: data, pointer: "/recipe/evaluation/data" }]),
  ];
  const checks = await Promise.allSettled(
    sources.map(async ({ value }) => checkSource(context, value)),
  );
  checks.forEach((check, i) => {
    if (check.status === "rejected")
      refusals.push(buildRefusal(sources[i]?.pointer ?? "", check.reason));
  });
  throwRefusals(refusals);
  return request.models.flatMap(({ value }) =>
    targets.map((resolved) => jobFromRequest(request, value, resolved)),
  );
}

interface Refusal {
  readonly field: FieldError;
  readonly error: ServiceError;
}

function buildRefusal(pointer: string, error: unknown): Refusal {
  if (!(error instanceof ServiceError)) throw error;
  return { field: { pointer, message: error.message }, error };
}

function collectRefusal<T>(refusals: Refusal[], pointer: string, resolve: () => T): T | undefined {
  try {
    return resolve();
  } catch (error) {
    refusals.push(buildRefusal(pointer, error));
    return undefined;
  }
}

function throwRefusals(refusals: readonly Refusal[]): void {
  const [first] = refusals;
  if (!first) return;
  const { code, message } = first.error;
  throw new ServiceError(code, message, {
    cause: first.error,
    fields: refusals.map(({ field }) => field),
  });
}
