import { ServiceError } from "../../contract/errors.ts";
import type { Artifact } from "../../contract/jobs/artifact.ts";
import type { ServerContext } from "../http/server-context.ts";

interface NamedArtifact extends Pick<Artifact, "name" | "sha256"> {
  readonly jobId: string;
}

/** Names of missing files in an answer. */
const maxNamed = 10;

/**
 * Looks for files before an answer begins with them: records that were restored, or a disk that
 * lost some, name what is not there.
 * @throws ServiceError artifact_missing
 */
export async function requireStored(
  { blobs, metrics, log }: Pick<ServerContext, "blobs" | "metrics" | "log">,
  artifacts: readonly NamedArtifact[],
): Promise<void> {
  const missing: NamedArtifact[] = [];
  for (const artifact of artifacts) {
    if ((await blobs.find(artifact.sha256)) === undefined) missing.push(artifact);
  }
  if (missing.length === 0) return;
  for (const { jobId, name, sha256 } of missing) {
    metrics.countMissingFile();
    log("error", "A file of a job is not stored", { jobId, artifact: name, sha256 });
  }
  const names = missing.slice(0, maxNamed).map(({ jobId, name }) => `"${name}" of job "${jobId}"`);
  const more = missing.length > maxNamed ? ` and ${missing.length - maxNamed} more` : "";
  const verb = missing.length === 1 ? "is" : "are";
  throw new ServiceError(
    "artifact_missing",
    `${names.join(", ")}${more} ${verb} not stored any more: retry the job to get the result again`,
  );
}
