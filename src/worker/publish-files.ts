import { createReadStream } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import type { Artifact } from "../contract/artifact.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { BlobStore } from "../storage/blob-store.ts";
import type { Stage } from "./stage-clock.ts";

interface Publication {
  readonly files: readonly Pick<Artifact, "name" | "kind" | "bytes">[];
  /** Content of `report.json`. */
  readonly report: object;
}

interface PublishSurroundings {
  readonly blobs: BlobStore;
  readonly outputDirectory: string;
  readonly signal: AbortSignal;
  readonly stage: Stage;
}

/** Stores the result's files and the report on it. */
export async function publishFiles(
  { files, report }: Publication,
  { blobs, outputDirectory, signal, stage }: PublishSurroundings,
): Promise<Artifact[]> {
  const artifacts: Artifact[] = [];
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let done = 0;
  for (const { name, kind, bytes } of files) {
    const blob = await blobs.write(createReadStream(path.join(outputDirectory, name)), { signal });
    artifacts.push({ name, kind, ...blob });
    stage.log(`${name}: ${formatBytes(bytes)}, SHA-256 ${blob.sha256}`);
    done += bytes;
    stage.onProgress(done / total, `Storing: ${formatBytes(done)} of ${formatBytes(total)}`);
  }
  const text = Readable.from([Buffer.from(`${JSON.stringify(report, null, 2)}\n`)]);
  artifacts.push({ name: "report.json", kind: "report", ...(await blobs.write(text, { signal })) });
  return artifacts;
}
