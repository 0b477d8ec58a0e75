import { listDataFields, replaceDataSources } from "../../contract/jobs/recipe-data.ts";
import { type FieldError, ServiceError } from "../../contract/errors.ts";
import type { JobRequest } from "../../contract/jobs/job.ts";
import { describeExcess } from "../../contract/batches/jobs-size.ts";
import {
  effectiveRecipe,
  explainUnplanned,
  findTarget,
  findUnmeasuredGate,
  findUnsupportedField,
} from "../../contract/jobs/resolve-recipe.ts";
import {
  findUploadHash,
  isLocatedSource,
  missingUploadError,
} from "../../contract/models/model-source.ts";
import type { ModelReference } from "../../contract/models/model.ts";
import type { Owner } from "../../contract/people/principal.ts";
import { type JobFields, jobFromRequest, type NewJob } from "../../records/jobs/insert-jobs.ts";
import { checkAllowedPath, resolveAllowedPath } from "../../storage/allowed-path.ts";
import { checkUrl } from "../../storage/public-address.ts";
import { validationError } from "../http/field-errors.ts";
import type { ServerContext } from "../http/server-context.ts";

/** A value of a request and its JSON pointer. */
interface RequestField<T> {
  readonly value: T;
  readonly pointer: string;
}

interface ResolveJobsRequest extends JobFields, Pick<JobRequest, "recipe"> {
  /** Whose the jobs will be. */
  readonly owner: Owner;
  readonly models: readonly RequestField<ModelReference>[];
  readonly targets: readonly RequestField<string>[];
}

/**
 * The jobs of models × targets, with target and recipe resolved.
 * @throws ServiceError of the first field that the service refuses, with all refused fields
 */
export async function resolveJobs(
  context: ServerContext,
  request: ResolveJobsRequest,
): Promise<NewJob[]> {
  requireAllowedDeadline(context, request);
  const refusals: Refusal[] = [];
  const targets = resolveTargets(context, request, refusals);
  const pinned = await pinSources(context, request, refusals);
  throwRefusals(refusals);
  requireBoundedJobs(request, targets);
  const { origin } = request.owner;
  return request.models.flatMap(({ value }) =>
    targets.map((resolved) => {
      const model = { ...value, source: pinned.get(value.source) ?? value.source };
      const recipe = replaceDataSources(resolved.recipe, (source) => pinned.get(source) ?? source);
      return { ...jobFromRequest(request, model, { ...resolved, recipe }), origin };
    }),
  );
}

/**
 * Refuses a request that is small and makes many large jobs, before they are made.
 * @throws ServiceError validation_failed
 */
function requireBoundedJobs(
  { models }: ResolveJobsRequest,
  targets: readonly Pick<NewJob, "recipe">[],
): void {
  const excess = describeExcess(
    models.map(({ value }) => value),
    targets.map(({ recipe }) => recipe),
  );
  if (excess === undefined) return;
  const message = `${excess.message}: send several requests`;
  throw validationError([{ pointer: "", message }]);
}

/** @throws ServiceError validation_failed */
function requireAllowedDeadline(
  { quotas }: ServerContext,
  { deadlineSeconds = 0 }: ResolveJobsRequest,
): void {
  if (deadlineSeconds <= quotas.deadlineSeconds) return;
  const allowed = `this service allows at most ${quotas.deadlineSeconds}`;
  const message = `Is ${deadlineSeconds}, and ${allowed}`;
  throw validationError([{ pointer: "/deadlineSeconds", message }]);
}

function resolveTargets(
  context: ServerContext,
  { recipe: requested = {}, gates, dryRun, targets }: ResolveJobsRequest,
  refusals: Refusal[],
): Pick<NewJob, "target" | "recipe">[] {
  const presetPointer = "/recipe/preset";
  return targets.flatMap(({ value, pointer }) => {
    const target = collectRefusal(refusals, pointer, () => findTarget(context.targets, value));
    if (!target) return [];
    const resolve = () => effectiveRecipe(target, requested);
    const recipe = collectRefusal(refusals, presetPointer, resolve);
    if (!recipe) return [];
    const refuse = (field: string, message: string) => {
      refusals.push(buildRefusal(field, new ServiceError("recipe_unsupported", message)));
      return [];
    };
    const unsupported = findUnsupportedField(recipe, target);
    if (unsupported) return refuse(`/recipe/${unsupported.field}`, unsupported.message);
    const unplanned = dryRun ? explainUnplanned(recipe) : undefined;
    if (unplanned !== undefined) return refuse("/dryRun", unplanned);
    const unmeasured = findUnmeasuredGate(recipe, gates);
    if (unmeasured) return refuse(`/gates/${unmeasured.gate}`, unmeasured.message);
    return [{ target, recipe }];
  });
}

/** The models and the recipe's data. */
function listSources({ models, recipe }: ResolveJobsRequest): RequestField<string>[] {
  const sources = models.map(({ value, pointer }) => {
    return { value: value.source, pointer: `${pointer}/source` };
  });
  const data = listDataFields(recipe ?? {}).map(({ field, source }) => {
    return { value: source, pointer: `/recipe/${field}` };
  });
  return [...sources, ...data];
}

/** Each source with what its jobs record. */
async function pinSources(
  context: ServerContext,
  request: ResolveJobsRequest,
  refusals: Refusal[],
): Promise<ReadonlyMap<string, string>> {
  const pinned = new Map<string, string>();
  const fieldsOfSources = Map.groupBy(listSources(request), ({ value }) => value);
  const checks = [...fieldsOfSources].map(async ([source, fields]) => {
    return checkSource(context, request.owner, source).then(
      (recorded) => void pinned.set(source, recorded),
      (error: unknown) => fields.map(({ pointer }) => buildRefusal(pointer, error)),
    );
  });
  refusals.push(...(await Promise.all(checks)).flatMap((refused) => refused ?? []));
  return pinned;
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
  const { code, message, headers } = first.error;
  const fields = refusals.map(({ field }) => field);
  throw new ServiceError(code, message, { cause: first.error, headers, fields });
}

/**
 * Refuses, before a job is created, a source that is not the owner's or that no worker would fetch.
 * The worker checks again what can change meanwhile.
 * @returns the source as the job records it
 * @throws ServiceError model_source_refused, model_not_found, model_fetch_failed, unavailable
 */
async function checkSource(context: ServerContext, owner: Owner, source: string): Promise<string> {
  if (isLocatedSource(source)) return context.sources.pin(owner.project, source);
  await checkFixedSource(context, owner, source);
  return source;
}

async function checkFixedSource(
  { records, blobs, limits, executor }: ServerContext,
  { project, origin }: Owner,
  source: string,
): Promise<void> {
  if (source.startsWith("file:")) {
    // In a cluster the workers' disks have the files, and the service's need not.
    if (executor.projectNamespace === undefined)
      await resolveAllowedPath(source, limits.allowedRoots);
    else checkAllowedPath(source, limits.allowedRoots);
    return;
  }
  const sha256 = findUploadHash(source);
  if (sha256 !== undefined) {
    const search = { project, repository: origin?.repository, sha256 };
    if ((await records.projectBlobs.has(search)) && (await blobs.find(sha256))) return;
    throw missingUploadError(sha256);
  }
  checkUrl(new URL(source), limits.allowPrivateAddresses);
}
