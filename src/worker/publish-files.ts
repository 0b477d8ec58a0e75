import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { Artifact } from "../contract/jobs/artifact.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import type { JobContext } from "./job-context.ts";

type PublishContext = Pick<
  JobContext,
  "blobs" | "outputDirectory" | "reporter" | "runStage" | "signal"
>;

/** Stores files of the result and reports each as soon as it is stored. */
export async function publishFiles(
  { blobs, outputDirectory, reporter, runStage, signal }: PublishContext,
  files: readonly Pick<Artifact, "name" | "kind" | "bytes">[],
): Promise<void> {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  await runStage("publish", async ({ log, onProgress }) => {
    let done = 0;
    for (const { name, kind, bytes } of files) {
      const blob = await blobs.writeFile(path.join(outputDirectory, name), { signal });
      reporter.artifact({ name, kind, ...blob });
      log(`${name}: ${formatBytes(bytes)}, SHA-256 ${blob.sha256}`);
      done += bytes;
      onProgress(done / total, `Storing: ${formatBytes(done)} of ${formatBytes(total)}`);
    }
  });
}

/** Stores and reports files of JSON that say what was done. */
export async function publishDocuments(
  { blobs, outputDirectory, reporter, runStage, signal }: PublishContext,
  documents: readonly (Pick<Artifact, "name" | "kind"> & { readonly content: string })[],
): Promise<void> {
  await runStage("publish", async () => {
    for (const { name, kind, content } of documents) {
      const file = path.join(outputDirectory, name);
      await writeFile(file, content);
      const blob = await blobs.writeFile(file, { signal });
      reporter.artifact({ name, kind, ...blob });
    }
  });
}
