import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type UnnumberedEvent, workerEvent } from "../src/contract/worker-protocol/messages.ts";
import { openRecords } from "../src/records/open-records.ts";
import { purgeReleasedBlobs } from "../src/service/storage-folder/purge-regularly.ts";
import { createDirectoryBlobStore } from "../src/storage/directory-blob-store.ts";
import { makeNewJob } from "../test/records/new-jobs.ts";
import { limitRow, reportBench } from "./result.ts";

/**
 * Jobs with an upload, a log and an artifact each, that are made and deleted by retention while a
 * clock advances: what is on the disk must stay the same. The audit, which is kept for good, has no
 * part in it. Arguments: jobs, days.
 */
const [, jobs = "20000", days = "40"] = process.argv.slice(2);
const jobsPerDay = Math.ceil(Number(jobs) / Number(days));
const dayMs = 86_400_000;
const keptDays = 4;
const retention = { jobs: keptDays * dayMs, models: keptDays * dayMs, logs: dayMs };
const project = "default";
const logLines = 20;
const [modelBytes, artifactBytes] = [8_192, 4_096];
const callers = 8;
/** By how much a file system and a database may differ between two days. */
const tolerance = 1.1;

/** From the present on: the times of files are the disk's own. */
let time = Date.now();
const now = () => new Date(time++);

await using cleanup = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), "retention-"));
cleanup.defer(() => rm(folder, { recursive: true }));
const records = await openRecords(join(folder, "service.sqlite"), { now });
cleanup.defer(() => records.close());
const blobs = await createDirectoryBlobStore(folder);

interface DayEnd {
  readonly day: number;
  readonly jobs: number;
  readonly blobs: number;
  readonly diskMiB: number;
}

const course: DayEnd[] = [];
for (let day = 1; day <= Number(days); day++) {
  let left = jobsPerDay;
  const caller = async () => {
    while (left-- > 0) await runJob();
  };
  await Promise.all(Array.from({ length: callers }, caller));
  time += dayMs;
  await records.deleteExpired(retention);
  await purgeReleasedBlobs(records, blobs, now());
  course.push({ day, ...(await measure()) });
}
console.table(course.filter(({ day }) => day % Math.ceil(Number(days) / 20) === 0));
const full = course.filter(({ day }) => day > keptDays + 1);
const third = Math.ceil(full.length / 3);
const [first, last] = [full.slice(0, third), full.slice(-third)];
await reportBench("retention", [
  ...(["jobs", "blobs", "diskMiB"] as const).map((what) => {
    const growth = largest(last, what) / largest(first, what);
    return limitRow(`${what}, last days beside the first full ones`, "ratio", growth, tolerance);
  }),
  ...(["jobs", "blobs", "diskMiB"] as const).map((what) => ({
    what: `${what}, at most, of ${jobsPerDay * Number(days)} jobs in all`,
    unit: what,
    ours: largest(full, what),
    peer: null,
    bar: "none",
    met: null,
  })),
]);

function largest(part: readonly DayEnd[], what: Exclude<keyof DayEnd, "day">): number {
  return Math.max(...part.map((end) => end[what]));
}

/** A job from its upload to its end. */
async function runJob(): Promise<void> {
  const model = await storeRandom(modelBytes);
  await records.projectBlobs.add({ project, origin: null }, model);
  const source = `upload:sha256:${model.sha256}`;
  const newJob = makeNewJob({ model: { source, name: "small" } });
  const { id } = await records.jobs.create(project, newJob);
  await records.attempts.begin(id, "hash");
  const artifact = await storeRandom(artifactBytes);
  await records.jobBlobs.add(id, artifact);
  const lines = Array.from({ length: logLines }, (_, i): UnnumberedEvent => {
    return { type: "log", stream: "stdout", text: `Layer ${i + 1} of ${logLines} is quantized` };
  });
  const at = new Date(time).toISOString();
  const events: UnnumberedEvent[] = [
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    ...lines,
    { type: "artifact", artifact: { name: "model.onnx", kind: "model", ...artifact } },
    { type: "result", outcome: "Completed" },
  ];
  const numbered = events.map((event, i) => workerEvent.parse({ ...event, seq: i + 1, at }));
  await records.workers.recordEvents(id, 1, numbered);
  await records.attempts.end(id, 1, { error: null, lines: [] });
}

function storeRandom(bytes: number) {
  return blobs.write(Readable.from([randomBytes(bytes)]));
}

async function measure(): Promise<Omit<DayEnd, "day">> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  let [blobFiles, bytes] = [0, 0];
  for (const file of files.filter((entry) => entry.isFile())) {
    bytes += (await stat(join(file.parentPath, file.name))).size;
    if (/\/blobs\//.test(`${file.parentPath}/`)) blobFiles++;
  }
  const counts = [...(await records.metrics.countByStatus()).values()];
  return {
    jobs: counts.reduce((sum, count) => sum + count, 0),
    blobs: blobFiles,
    diskMiB: bytes / 2 ** 20,
  };
}
