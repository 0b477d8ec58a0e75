import { batchJobId } from "../../contract/id.ts";
import { requireNamespace } from "../../kubernetes/require-namespace.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterBatch } from "../../records/jobs/cluster-records.ts";
import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import { listNamedUploads } from "../../records/jobs/require-uploads.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";
import { findFirstOfProject } from "./find-first-of-project.ts";
import { findInNamespace } from "./find-in-namespace.ts";
import { lacksUpload } from "./lacks-upload.ts";
import { batchFromResource, jobFromResource } from "./records-from-resources.ts";
import { restoreUploads } from "./restore-uploads.ts";
import { byId, type SyncContext } from "./sync-context.ts";

/** Creates the record of a batch that was not created over REST, with all of its jobs. */
export async function createBatchRecord(
  context: SyncContext,
  id: string,
): Promise<ClusterBatch | undefined> {
  const first = await findFirstOfProject(context, context.batches.cache.byIndex(byId, id));
  if (first === undefined) return undefined;
  const { resource, project } = first;
  const batch = batchFromResource(resource, context.targets);
  const createdAt = resource.metadata.creationTimestamp;
  const namespace = requireNamespace(resource);
  const children = batch.jobs.map((job, i) => {
    return { job, child: findInNamespace(context.jobs, batchJobId(id, i), namespace) };
  });
  const restored = children.filter(({ child }) => child === undefined || !lacksUpload(child));
  await restoreUploads(context, { project, createdAt, jobs: restored.map(({ job }) => job) });
  const jobs = children.map(({ job, child }) => {
    return { ...job, hasBegun: child !== undefined && isBegunChild(context, child, job) };
  });
  await context.records.cluster.createBatch(project, { ...batch, jobs });
  return context.records.cluster.findBatch(id);
}

/** Whether the resource is at work on what the batch says: anybody can create one of that id. */
function isBegunChild(
  { targets }: SyncContext,
  child: Stored<CompressionJobObject>,
  job: NewJob,
): boolean {
  const begun = jobFromResource(child, targets);
  const uploads = new Set(listNamedUploads([begun]));
  return begun.hasBegun === true && listNamedUploads([job]).every((hash) => uploads.has(hash));
}
