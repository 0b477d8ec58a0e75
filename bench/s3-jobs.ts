import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { workerExit } from "../src/contract/worker.ts";
import { openS3BlobStore } from "../src/storage/s3/s3-blob-store.ts";
import { startFaultyS3Server } from "../test/storage/s3-server.ts";
import { startPodService } from "../test/worker/pod-service.ts";
import { waitForPodEnd } from "../test/worker/pod-steps.ts";
import { limitRow, reportBench } from "./result.ts";
import { storeObject } from "./sources/store-object.ts";
import { writeLargeModel } from "./sources/write-large-model.ts";

/**
 * Jobs whose workers, run as pods run them, read a model with external data from a bucket and store
 * the result there: what of it passes through the service. Arguments: jobs, bytes of the model.
 */
const [, jobs = "1000", bytes = "100000000"] = process.argv.slice(2);
const atOnce = 2;
const recipe = { evaluation: { level: "none" } } as const;

await using cleanup = new AsyncDisposableStack();
const owner = {
  after: (work: () => unknown) => cleanup.defer(async () => void (await work())),
  signal: new AbortController().signal,
};
const folder = await mkdtemp(join(tmpdir(), "s3-jobs-"));
cleanup.defer(() => rm(folder, { recursive: true }));
const { access, counted } = await startFaultyS3Server(owner);
const blobs = cleanup.use(await openS3BlobStore(access));
let modelBytes = 0;
for (const name of await writeLargeModel(folder, Number(bytes))) {
  await storeObject(access, `nets/${name}`, join(folder, name));
  modelBytes += (await stat(join(folder, name))).size;
}
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
const start = performance.now();
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (left-- > 0) await runJob();
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
  figure("time", "s", seconds),
]);

async function runJob(): Promise<void> {
  const source = `s3://${access.bucket}/nets/net.onnx`;
  const id = await service.createJob({ source, name: "net" }, recipe);
  const pod = await service.startPod(id);
  assert.equal((await waitForPodEnd(pod)).code, workerExit.completed);
  const { artifacts } = await service.find(id);
  resultBytes += artifacts.reduce((sum, artifact) => sum + artifact.bytes, 0);
  await rm(join(service.folder, pod.uid), { recursive: true });
}
