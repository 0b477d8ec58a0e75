import type { NewJob } from "../../records/jobs/insert-jobs.ts";
import { listNamedUploads } from "../../records/jobs/require-uploads.ts";
import type { SyncContext } from "./sync-context.ts";

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
