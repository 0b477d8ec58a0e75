import type { NewJob } from "../../records/insert-jobs.ts";
import { listNamedUploads } from "../../records/list-named-uploads.ts";
import type { SyncContext } from "./sync-context.ts";

/**
 * Records the uploads that jobs of resources name and that the records do not know: the database
 * was lost, and without the files of its manifest no job can be worked on. They are the project's
 * then, whichever workflow uploaded them.
 */
export async function restoreUploads(
  { records, findUpload }: Pick<SyncContext, "records" | "findUpload">,
  project: string,
  jobs: readonly Pick<NewJob, "model" | "recipe">[],
): Promise<void> {
  for (const sha256 of listNamedUploads(jobs)) {
    if (await records.projectBlobs.has({ project, repository: undefined, sha256 })) continue;
    const upload = await findUpload(sha256);
    if (upload !== undefined) await records.manifests.restore(project, upload);
  }
}
