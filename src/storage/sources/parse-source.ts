import { ServiceError } from "../../contract/errors.ts";

interface BucketSource {
  readonly scheme: "s3" | "gs";
  readonly bucket: string;
  readonly key: string;
}

export interface HubSource {
  readonly scheme: "hf";
  /** `OWNER/NAME` of the repository. */
  readonly repository: string;
  readonly owner: string;
  /** A branch, a tag or a commit; with percent-encoded slashes in the source. */
  readonly revision: string;
  /** "" where the source is the repository. */
  readonly file: string;
}

/**
 * The parts of an `s3://`, `gs://` or `hf://` source.
 * @throws ServiceError model_source_refused
 */
export function parseSource(source: string): BucketSource | HubSource {
  const [, scheme = "", first = "", rest = ""] =
    /^([a-z0-9]+):\/\/([^/]+)\/(.+)$/s.exec(source) ?? [];
  if (hasDotSegments(`${first}/${rest}`))
    throw refusedError(source, 'must not have "." or ".." in its path');
  if (scheme === "s3" || scheme === "gs") return { scheme, bucket: first, key: rest };
  const [, name = "", , revision = "main", , file = ""] =
    /^([^/@]+)(@([^/]+))?(\/(.*))?$/s.exec(rest) ?? [];
  if (scheme !== "hf" || name === "") throw refusedError(source, "names no repository");
  const repository = `${first}/${name}`;
  if (hasDotSegments(repository)) throw refusedError(source, 'must not have "." or ".." as a name');
  return { scheme, owner: first, repository, file, revision: decodeRevision(source, revision) };
}

/** Addresses without such segments would be others. */
function hasDotSegments(path: string): boolean {
  return path.split("/").some((segment) => segment === "." || segment === "..");
}

function decodeRevision(source: string, revision: string): string {
  try {
    const decoded = decodeURIComponent(revision);
    if (!hasDotSegments(decoded)) return decoded;
  } catch (cause) {
    throw refusedError(source, "has a revision that is not percent-encoded", cause);
  }
  throw refusedError(source, 'must not have "." or ".." in its revision');
}

function refusedError(source: string, problem: string, cause?: unknown): ServiceError {
  return new ServiceError("model_source_refused", `"${source}" ${problem}`, { cause });
}
