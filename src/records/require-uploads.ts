import { ServiceError } from "../contract/errors.ts";
import type { NewJob } from "./insert-jobs.ts";
import { listNamedUploads } from "./list-named-uploads.ts";
import type { ResourceReference } from "./resource-reference.ts";
import type { WriteTransaction } from "./store.ts";

const hashesPerQuery = 200;

interface AddedJobs {
  readonly jobs: readonly Pick<NewJob, "model" | "recipe">[];
  readonly resource?: ResourceReference | undefined;
}

/**
 * Requires the uploads that new jobs name, which may have expired since the request was checked.
 * Resources of a cluster exist already when they are recorded.
 * @throws ServiceError model_not_found
 */
export async function requireUploads(
  { trx }: WriteTransaction,
  project: string,
  { jobs, resource }: AddedJobs,
): Promise<void> {
  const isRequested = (resource?.uid ?? null) === null;
  if (!isRequested) return;
  const hashes = listNamedUploads(jobs);
  for (let start = 0; start < hashes.length; start += hashesPerQuery) {
    await requireStored(trx, project, hashes.slice(start, start + hashesPerQuery));
  }
}

async function requireStored(
  trx: WriteTransaction["trx"],
  project: string,
  hashes: readonly string[],
): Promise<void> {
  const rows = await trx
    .selectFrom("project_blobs")
    .select("sha256")
    .where("project", "=", project)
    .where("sha256", "in", hashes)
    .execute();
  const missing = hashes.find((hash) => !rows.some(({ sha256 }) => sha256 === hash));
  if (missing === undefined) return;
  throw new ServiceError("model_not_found", `No file with SHA-256 ${missing} was uploaded`);
}
