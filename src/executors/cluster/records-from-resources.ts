import { resourceStatus } from "./job-report.ts";
import type { SyncContext } from "./sync-context.ts";
import { batchSpec, type BatchSpec } from "../../contract/custom-resources/batch-resource.ts";
import { compressionJobSpec } from "../../contract/custom-resources/compression-job.ts";
import { type ErrorCode, ServiceError } from "../../contract/errors.ts";
import { formatSpecProblems } from "../../contract/format-problem.ts";
import { batchChildName, decodeIdTime } from "../../contract/id.ts";
import { batchName } from "../../contract/batches/batch.ts";
import { describeBatchExcess } from "../../contract/batches/jobs-size.ts";
import type { RequestedRecipe } from "../../contract/jobs/recipe.ts";
import { effectiveRecipe, findTarget, resolveRecipe } from "../../contract/jobs/resolve-recipe.ts";
import type { JobStatus } from "../../contract/jobs/status.ts";
import type { Target } from "../../contract/jobs/target.ts";
import { parseInput } from "../../contract/parse-input.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import type { KubernetesObject, Stored } from "../../kubernetes/resources.ts";
import type { NewBatch } from "../../records/jobs/insert-batch.ts";
import { jobFromRequest, listNamedUploads, type NewJob } from "../../records/jobs/insert-jobs.ts";
import type { BatchObject, CompressionJobObject } from "../../resources/custom-resources.ts";
import { resolveBatchId, resolveJobId } from "../../resources/job-identity.ts";
import { defaultProject } from "../../contract/project.ts";
import { namespaceProject } from "../../resources/served-namespaces.ts";

/**
 * What the contract refuses of a spec that the API server took: a record of it could not be read.
 */
export function describeRefusedSpec({ spec }: CompressionJobObject): string | undefined {
  const { problems } = parseInput(compressionJobSpec, spec);
  return problems && formatSpecProblems(problems);
}

/** Whether a batch has no record, for the same reason, or since the operator refuses it. */
export function isRefusedBatch({ spec }: BatchObject): boolean {
  return (
    describeBatchExcess(spec) !== undefined || parseInput(batchSpec, spec).problems !== undefined
  );
}

/** The record of a job that was created as a resource. */
export function jobFromResource(
  object: Stored<CompressionJobObject>,
  targets: readonly Target[],
): NewJob {
  const { metadata, spec } = object;
  const { name, uid } = metadata;
  const id = resolveJobId({ metadata });
  return {
    ...jobFromRequest(spec, spec.model, resolveTargetAndRecipe(targets, spec.target, spec.recipe)),
    id,
    createdAt: recordedCreationTime(id, metadata),
    resource: { namespace: requireNamespace(object), name, uid },
    hasBegun: hasBegun(object),
  };
}

/**
 * The record of a batch that was created as a resource, with all of its jobs. The operator creates
 * their resources later.
 */
export function batchFromResource(
  object: Stored<BatchObject>,
  targets: readonly Target[],
): NewBatch {
  const { metadata, spec } = object;
  const { name, uid } = metadata;
  const namespace = requireNamespace(object);
  const id = resolveBatchId({ metadata });
  const createdAt = recordedCreationTime(id, metadata);
  const { models, kind, failFast, suite = null, revision = null, labels = {} } = spec;
  const jobs = batchJobs(spec, targets).map((job, index) => ({
    ...job,
    createdAt,
    resource: { namespace, name: batchChildName(name, index), uid: null },
  }));
  const resource = { namespace, name, uid, isSource: true };
  const batch = { suite, revision, kind, failFast, labels };
  return { id, createdAt, resource, name: batchName({ ...spec, models }), ...batch, jobs };
}

/** One job for each pair of a model and a target, in the order of models × targets. */
function batchJobs(spec: BatchSpec, targets: readonly Target[]) {
  const resolutions = spec.targets.map((target) =>
    resolveTargetAndRecipe(targets, target, spec.recipe),
  );
  return spec.models.flatMap((model) =>
    resolutions.map((resolution) =>
      jobFromRequest({ ...spec, name: undefined }, model, resolution),
    ),
  );
}

/** The precise time of the id, limited to the second of creation, since users can choose the id. */
function recordedCreationTime(
  id: string,
  { creationTimestamp }: Stored<KubernetesObject>["metadata"],
): string {
  const latest = Date.parse(creationTimestamp) + 999;
  return new Date(Math.min(decodeIdTime(id).getTime(), latest)).toISOString();
}

/**
 * An unknown target or preset is recorded by its name: the operator fails the job with the reason.
 */
function resolveTargetAndRecipe(
  targets: readonly Target[],
  name: string,
  recipe: RequestedRecipe = {},
) {
  const { preset: _preset, ...fields } = recipe;
  try {
    const target = findTarget(targets, name);
    return { target, recipe: effectiveRecipe(target, recipe) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { target: { ...unknownTarget, name }, recipe: resolveRecipe(fields) };
  }
}

const unknownTarget: Omit<Target, "name"> = {
  description: "",
  executionProvider: "cpu",
  operators: "standard",
  recipe: {},
  presets: {},
};

const begunStatuses: ReadonlySet<JobStatus> = new Set(["Sharding", "Optimizing", "Completed"]);

/** Whether a worker has worked on the job of a resource: the service gave it an assignment. */
function hasBegun(resource: CompressionJobObject): boolean {
  const { status, transitions = [] } = resourceStatus(resource);
  return [status, ...transitions.map((each) => each.status)].some((each) =>
    begunStatuses.has(each),
  );
}

/** Whether a resource has failed since its project does not have the model, or the data. */
export function lacksUpload(resource: CompressionJobObject): boolean {
  const { status, statusReason } = resourceStatus(resource);
  return status === "Failed" && statusReason === ("model_not_found" satisfies ErrorCode);
}

interface RecordedResource {
  readonly project: string;
  readonly createdAt: string | undefined;
  readonly jobs: readonly Pick<NewJob, "model" | "recipe">[];
}

/**
 * Records the uploads that jobs of a resource name and that the records do not know, where they are
 * younger than the resource: the database was lost, and without the files of its manifest no job
 * can be worked on. They are the project's then, whichever workflow uploaded them. A later resource
 * gets no upload of another project by its hash.
 */
export async function restoreUploads(
  { records, findUpload, log }: Pick<SyncContext, "records" | "findUpload" | "log">,
  { project, createdAt, jobs }: RecordedResource,
): Promise<void> {
  if (createdAt === undefined || !(await records.cluster.wereCreatedAfter(createdAt))) return;
  for (const sha256 of listNamedUploads(jobs)) {
    if (await records.projectBlobs.has({ project, repository: undefined, sha256 })) continue;
    const upload = await findUpload(sha256);
    if (upload === undefined || (await records.manifests.restore(project, upload))) continue;
    log("warn", "The project has too many manifests to restore an upload", { project, sha256 });
  }
}

const projectChange = {
  project: defaultProject,
  action: "createProject",
  tokenId: null,
  tokenName: "namespace",
};

/**
 * Of resources with the same id the one that was created first, as the one that has a record, and
 * the project of its namespace, which is created where it is new. Others have a copy of its label.
 */
export async function findFirstOfProject<T extends KubernetesObject>(
  { records, namespaces }: SyncContext,
  resources: readonly Stored<T>[],
): Promise<{ resource: Stored<T>; project: string } | undefined> {
  const [first] = resources
    .flatMap((resource) => {
      const project = namespaceProject(namespaces, requireNamespace(resource));
      return project === undefined ? [] : [{ resource, project }];
    })
    .toSorted((one, other) => createdAt(one.resource) - createdAt(other.resource));
  if (first !== undefined && first.project !== defaultProject) {
    await records.projects.ensure(first.project, projectChange);
  }
  return first;
}

/** Whether one of the resources without a record may have one later. */
export function mayBeRecorded(
  { namespaces }: SyncContext,
  resources: readonly Stored<CompressionJobObject>[],
): boolean {
  return resources.some((resource) => {
    const project = namespaceProject(namespaces, requireNamespace(resource));
    return project !== undefined && describeRefusedSpec(resource) === undefined;
  });
}

function createdAt({ metadata }: Stored<KubernetesObject>): number {
  return Date.parse(metadata.creationTimestamp);
}
