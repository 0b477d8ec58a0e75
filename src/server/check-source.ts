import { ServiceError } from "../contract/errors.ts";
import { findUploadHash, isLocatedSource } from "../contract/models/model-source.ts";
import type { Owner } from "../contract/people/principal.ts";
import { checkUrl } from "../storage/check-url.ts";
import { resolveAllowedPath, checkAllowedPath } from "../storage/allowed-path.ts";
import type { ServerContext } from "./server-context.ts";

/**
 * Refuses, before a job is created, a source that is not the owner's or that no worker would fetch.
 * The worker checks again what can change meanwhile.
 * @returns the source as the job records it
 * @throws ServiceError model_source_refused, model_not_found, model_fetch_failed, unavailable
 */
export async function checkSource(
  context: ServerContext,
  owner: Owner,
  source: string,
): Promise<string> {
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
    throw new ServiceError("model_not_found", `No file with SHA-256 ${sha256} was uploaded`);
  }
  const url = URL.parse(source);
  if (!url) throw new ServiceError("model_source_refused", `"${source}" is not a URL`);
  checkUrl(url, limits.allowPrivateAddresses);
}
