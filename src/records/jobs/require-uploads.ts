import { listDataSources } from "../../contract/jobs/recipe-data.ts";
import type { NewJob } from "./insert-jobs.ts";
import { ServiceError } from "../../contract/errors.ts";
import { findUploadHash } from "../../contract/models/model-source.ts";
import { findMissingUploads } from "../blobs/find-missing-uploads.ts";
import type { WriteTransaction } from "../database/store.ts";

/**
 * Requires the uploads that new jobs name, which may have expired since the request was checked.
 * @throws ServiceError model_not_found
 */
export async function requireUploads(
  { trx }: WriteTransaction,
  project: string,
  jobs: readonly Pick<NewJob, "model" | "recipe">[],
): Promise<void> {
  const [missing] = await findMissingUploads(trx, project, listNamedUploads(jobs));
  if (missing !== undefined) throw missingUploadError(missing);
}

/** For a job that names an upload which its project does not have. */
export function missingUploadError(sha256: string): ServiceError {
  return new ServiceError("model_not_found", `No file with SHA-256 ${sha256} was uploaded`);
}

/** Hashes of the uploads that jobs name as models or data, each once. */
export function listNamedUploads(jobs: readonly Pick<NewJob, "model" | "recipe">[]): string[] {
  const sources = jobs.flatMap(({ model, recipe }) => [model.source, ...listDataSources(recipe)]);
  return [...new Set(sources.flatMap((source) => findUploadHash(source) ?? []))];
}
