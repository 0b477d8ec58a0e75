import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";
import type { Artifact } from "../../contract/jobs/artifact.ts";
import type { ProducingJob } from "../../records/jobs/batch-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";

interface ArchivedFile {
  /** Within the archive. */
  readonly path: string;
  readonly job: ProducingJob;
  readonly artifact: Artifact;
}

const manifestPath = "manifest.json";

/**
 * Files of a batch as a tar archive, uncompressed, since models hardly get smaller. Each blob is
 * read when the reader comes to it. The archive fails where a blob is missing or has another size.
 */
export async function* writeBatchArchive(
  blobs: Pick<BlobStore, "read">,
  batchId: string,
  jobs: readonly ProducingJob[],
): AsyncGenerator<Uint8Array, void> {
  const archive = pack();
  writeEntries(archive, blobs, { batchId, files: nameFiles(jobs) }).catch((error: unknown) => {
    archive.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  try {
    for await (const piece of archive) {
      if (!(piece instanceof Uint8Array)) throw new TypeError("An archive is read as bytes");
      yield piece;
    }
  } finally {
    archive.destroy();
  }
}

interface ArchiveContents {
  readonly batchId: string;
  readonly files: readonly ArchivedFile[];
}

async function writeEntries(
  archive: Pack,
  blobs: Pick<BlobStore, "read">,
  contents: ArchiveContents,
): Promise<void> {
  archive.entry({ name: manifestPath }, describeContents(contents));
  for (const { path, job, artifact } of contents.files) {
    const mtime = new Date(job.finishedAt ?? job.createdAt);
    const entry = archive.entry({ name: path, size: artifact.bytes, mtime });
    await pipeline(blobs.read(artifact.sha256), entry);
  }
  archive.finalize();
}

/** `JOB-NAME/ARTIFACT`, also where names of jobs differ in what file systems do not distinguish. */
function nameFiles(jobs: readonly ProducingJob[]): ArchivedFile[] {
  const taken = new Set([manifestPath]);
  const next = new Map<string, number>();
  return jobs.flatMap((job) => {
    const safe = job.name.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
    const base = safe.replace(/[.-]+$/, "") || job.id;
    let folder = base;
    while (taken.has(folder.toLowerCase())) {
      const number = next.get(base.toLowerCase()) ?? 2;
      next.set(base.toLowerCase(), number + 1);
      folder = `${base}-${number}`;
    }
    taken.add(folder.toLowerCase());
    return job.artifacts.map((artifact) => ({
      path: `${folder}/${artifact.name}`,
      job,
      artifact,
    }));
  });
}

function describeContents({ batchId, files }: ArchiveContents): string {
  const described = files.map(({ path, job, artifact: { kind, bytes, sha256 } }) => {
    return { path, jobId: job.id, job: job.name, status: job.status, kind, bytes, sha256 };
  });
  return JSON.stringify({ batchId, files: described }, undefined, 2);
}
