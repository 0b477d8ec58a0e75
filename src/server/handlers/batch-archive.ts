import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";
import type { ProducingJob } from "../../records/jobs/batch-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";

const manifestPath = "manifest.json";

/** The jobs of a batch from its first one on, each time the same ones in the same order. */
export type ReadJobs = () => Iterable<ProducingJob> | AsyncIterable<ProducingJob>;

/**
 * Files of a batch as a tar archive, uncompressed, since models hardly get smaller. Jobs are read
 * three times, for the size of the manifest, the manifest and the files, so that one job's list of
 * files is in memory at a time; each blob is read when the reader comes to it. The archive fails
 * where a blob is missing or has another size, or a job that it describes was deleted meanwhile.
 */
export async function* writeBatchArchive(
  blobs: Pick<BlobStore, "read">,
  batchId: string,
  readJobs: ReadJobs,
): AsyncGenerator<Uint8Array, void> {
  const archive = pack();
  writeEntries(archive, blobs, { batchId, readJobs }).catch((error: unknown) => {
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

interface ArchivedBatch {
  readonly batchId: string;
  readonly readJobs: ReadJobs;
}

async function writeEntries(
  archive: Pack,
  blobs: Pick<BlobStore, "read">,
  { batchId, readJobs }: ArchivedBatch,
): Promise<void> {
  const named: NamedJob[] = [];
  let size = 0;
  for await (const text of describeContents(batchId, nameJobs(readJobs(), named))) {
    size += Buffer.byteLength(text);
  }
  const read = () => readNamed(readJobs(), named);
  const manifest = archive.entry({ name: manifestPath, size });
  await pipeline(Readable.from(describeContents(batchId, read())), manifest);
  for await (const { folder, job } of read()) {
    const mtime = new Date(job.finishedAt ?? job.createdAt);
    for (const { name, bytes, sha256 } of job.artifacts) {
      const entry = archive.entry({ name: `${folder}/${name}`, size: bytes, mtime });
      await pipeline(blobs.read(sha256), entry);
    }
  }
  archive.finalize();
}

interface ArchivedJob {
  /** Within the archive. */
  readonly folder: string;
  readonly job: ProducingJob;
}

/** What an archive keeps of a job, which may go on and get more files. */
interface NamedJob extends Pick<ArchivedJob, "folder">, Pick<ProducingJob, "id" | "status"> {
  readonly files: number;
}

/** Folders differ, also where names of jobs do so in what file systems do not distinguish. */
async function* nameJobs(
  jobs: ReturnType<ReadJobs>,
  named: NamedJob[],
): AsyncGenerator<ArchivedJob, void> {
  const taken = new Set([manifestPath]);
  const next = new Map<string, number>();
  for await (const job of jobs) {
    const safe = job.name.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
    const base = safe.replace(/[.-]+$/, "") || job.id;
    let folder = base;
    while (taken.has(folder.toLowerCase())) {
      const number = next.get(base.toLowerCase()) ?? 2;
      next.set(base.toLowerCase(), number + 1);
      folder = `${base}-${number}`;
    }
    taken.add(folder.toLowerCase());
    named.push({ folder, id: job.id, status: job.status, files: job.artifacts.length });
    yield { folder, job };
  }
}

/** The jobs with the files that they had when they were named. */
async function* readNamed(
  jobs: ReturnType<ReadJobs>,
  named: readonly NamedJob[],
): AsyncGenerator<ArchivedJob, void> {
  const byId = new Map(named.map((each) => [each.id, each]));
  for await (const job of jobs) {
    const known = byId.get(job.id);
    if (known === undefined) continue;
    const { folder, status, files } = known;
    yield { folder, job: { ...job, status, artifacts: job.artifacts.slice(0, files) } };
  }
}

/** The manifest, a job at a time. */
async function* describeContents(
  batchId: string,
  jobs: AsyncIterable<ArchivedJob>,
): AsyncGenerator<string, void> {
  let before = `{\n  "batchId": ${JSON.stringify(batchId)},\n  "files": [\n    `;
  for await (const { folder, job } of jobs) {
    const files = job.artifacts.map(({ name, kind, bytes, sha256 }) => {
      const path = `${folder}/${name}`;
      const made = { jobId: job.id, job: job.name, status: job.status };
      return JSON.stringify({ path, ...made, kind, bytes, sha256 });
    });
    yield before + files.join(",\n    ");
    before = ",\n    ";
  }
  yield before.startsWith("{") ? `${before.trimEnd()}]\n}` : "\n  ]\n}";
}
