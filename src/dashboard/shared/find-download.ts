import type { Artifact } from "../../contract/jobs/artifact.ts";

/** Name of the file to take away: of a language model the archive, which has weights and tokenizer too. */
export function findDownload(artifacts: readonly Artifact[]): string | undefined {
  const ofKind = (wanted: Artifact["kind"]) => artifacts.find(({ kind }) => kind === wanted);
  return (ofKind("archive") ?? ofKind("model"))?.name;
}
