import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { workerExit } from "../src/contract/worker-protocol/exit-codes.ts";
import { blobKey, putObject, removeObjects } from "../src/storage/s3/objects.ts";
import { openS3BlobStore } from "../src/storage/s3/s3-blob-store.ts";
import { createS3Client } from "../src/storage/s3/s3-client.ts";
import { startFaultyS3Server } from "../test/storage/s3-server.ts";
import { startPodService } from "../test/worker/pod-service.ts";
import { waitForPodEnd } from "../test/worker/pod-steps.ts";
import { limitRow, reportBench } from "./result.ts";
import { writeLargeModel } from "./sources/write-large-model.ts";

/**
 * Jobs whose workers, run as pods run them, read a model with external data from a bucket and store
 * the result there: what of it passes through the service. Each job has a model of its own, which is
 * deleted with its result when the job has ended, so that few of them are on the disk at once.
 * Arguments: jobs, bytes of a model.
 */
const [, jobs = "1000", bytes = "100000000"] = process.argv.slice(2);
const atOnce = 2;
/** Files up to this size can be the same of several jobs, and stay. */
const smallBytes = 1_000_000;
/** Of a weight. */
const rowBytes = 2048 * 4;
const recipe = { evaluation: { level: "none" } } as const;

await using cleanup = new AsyncDisposableStack();
const owner = {
  after: (work: () => unknown) => cleanup.defer(async () => void (await work())),
  signal: new AbortController().signal,
};
const folder = await mkdtemp(join(tmpdir(), "s3-jobs-"));
cleanup.defer(() => rm(folder, { recursive: true }));
const { access, direct, counted } = await startFaultyS3Server(owner);
const blobs = cleanup.use(await openS3BlobStore(access));
const bucket = cleanup.use(createS3Client(direct));
const files: { readonly name: string; readonly content: Buffer }[] = [];
for (const name of await writeLargeModel(folder, Number(bytes))) {
  files.push({ name, content: await readFile(join(folder, name)) });
}
const modelBytes = files.reduce((sum, { content }) => sum + content.length, 0);
const { isPathStyle: pathStyle, ...rest } = access;
const service = await startPodService(owner, {
  blobs,
  credentials: { s3: [{ ...rest, pathStyle }] },
});
const sockets = new Set<Socket>();
service.onRequest = ({ socket }) => {
  sockets.add(socket);
  return false;
};
Object.assign(counted, { sent: 0, received: 0 });

let [left, resultBytes] = [Number(jobs), 0];
const results = new Set<string>();
const start = performance.now();
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (left-- > 0) await runJob(left);
  }),
);
const seconds = (performance.now() - start) / 1000;
const throughService = [...sockets].reduce((sum, { bytesRead, bytesWritten }) => {
  return sum + bytesRead + bytesWritten;
}, 0);
const all = Number(jobs) * modelBytes;
const atBucket = counted.sent + counted.received;
const figure = (what: string, unit: string, ours: number) => {
  return { what, unit, ours, peer: null, bar: "none", met: null };
};
await reportBench("s3-jobs", [
  limitRow("through the service, of the models' bytes", "ratio", throughService / all, 0.01),
  limitRow("at the bucket, of models and results", "ratio", atBucket / (all + resultBytes), 1.01),
  figure("models of all jobs", "GB", all / 1e9),
  figure("results of all jobs", "GB", resultBytes / 1e9),
  figure("jobs", "jobs", Number(jobs)),
  figure("time for a job", "s", seconds / Number(jobs)),
  figure("time", "s", seconds),
]);

async function runJob(number: number): Promise<void> {
  const keys = await storeModel(number);
  const source = `s3://${access.bucket}/${keys[0]}`;
  const id = await service.createJob({ source, name: "net" }, recipe);
  const pod = await service.startPod(id);
  assert.equal((await waitForPodEnd(pod)).code, workerExit.completed);
  const { artifacts } = await service.find(id);
  resultBytes += artifacts.reduce((sum, artifact) => sum + artifact.bytes, 0);
  const large = artifacts.filter((artifact) => artifact.bytes > smallBytes);
  assert.ok(large.length > 0);
  for (const { sha256 } of large) {
    assert.ok(!results.has(sha256), "Two jobs have the same result");
    results.add(sha256);
  }
  await removeObjects(bucket, [...keys, ...large.map(({ sha256 }) => blobKey(sha256))]);
  await rm(join(service.folder, pod.uid), { recursive: true });
}

/** Stores the model with the rows of its weights in another order, past what counts. @returns its keys */
async function storeModel(number: number): Promise<string[]> {
  const keys: string[] = [];
  for (const { name, content } of files) {
    const start = name.endsWith(".onnx") ? 0 : (number * rowBytes) % content.length;
    const rotated = Buffer.concat([content.subarray(start), content.subarray(0, start)]);
    const key = `nets/${number}/${name}`;
    await putObject(bucket, key, { content: rotated });
    keys.push(key);
  }
  return keys;
}
