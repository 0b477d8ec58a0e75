import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { Artifact } from "../contract/artifact.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import type { Stage } from "./stage-clock.ts";

interface Publication {
  readonly files: readonly Pick<Artifact, "name" | "kind" | "bytes">[];
  /** Content of `report.json`. */
  readonly report: object;
}

interface PublishFilesOptions {
  readonly blobs: BlobFiles;
  readonly outputDirectory: string;
  readonly signal: AbortSignal;
  readonly stage: Stage;
}

/** Stores the result's files and the report on it. */
export async function publishFiles(
  { files, report }: Publication,
  { blobs, outputDirectory, signal, stage }: PublishFilesOptions,
): Promise<Artifact[]> {
  const artifacts: Artifact[] = [];
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let done = 0;
  for (const { name, kind, bytes } of files) {
    const blob = await blobs.writeFile(path.join(outputDirectory, name), { signal });
    artifacts.push({ name, kind, ...blob });
    stage.log(`${name}: ${formatBytes(bytes)}, SHA-256 ${blob.sha256}`);
    done += bytes;
    stage.onProgress(done / total, `Storing: ${formatBytes(done)} of ${formatBytes(total)}`);
  }
  const reportPath = path.join(outputDirectory, "report.json");
  await writeFile(reportPath, `${JSON.stringify(report, null, 2)}\n`);
  const blob = await blobs.writeFile(reportPath, { signal });
  return [...artifacts, { name: "report.json", kind: "report", ...blob }];
}
