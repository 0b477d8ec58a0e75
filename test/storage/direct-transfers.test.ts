import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import path from "node:path";
import { Readable } from "node:stream";
import { test, type TestContext } from "node:test";
import { uploadAnswer } from "../../src/contract/worker-protocol/transfers.ts";
import { openS3BlobStore } from "../../src/storage/s3/s3-blob-store.ts";
import { createServiceBlobStore } from "../../src/storage/service-blob-store.ts";
import { createServiceConnection } from "../../src/worker/service-connection.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { startPodService } from "../worker/pod-service.ts";
import { cutAfter, slowDown, startFaultyS3Server } from "./s3-server.ts";

const skip = s3Missing;
const mebibyte = 1024 ** 2;
const timeouts = { start: 10_000, events: 10_000, files: 10_000, token: 0 };

/** A worker whose service keeps blobs in a bucket, and what passes through the service. */
async function openWorkerStore(t: TestContext) {
  const s3 = await startFaultyS3Server(t);
  const blobs = await openS3BlobStore(s3.access);
  t.after(() => blobs[Symbol.asyncDispose]());
  const service = await startPodService(t, { blobs });
  const sockets = new Set<Socket>();
  service.onRequest = ({ socket }) => {
    sockets.add(socket);
    return false;
  };
  const connect = async (token: string) => {
    const source = "https://models.test/net.onnx";
    const jobId = await service.createJob({ source, name: "net" });
    service.tokens.set(token, { podUid: token, part: null });
    const settings = { url: service.url, jobId, token: () => token, timeouts };
    const connection = createServiceConnection(settings);
    return { jobId, store: createServiceBlobStore(connection.requestService), ...connection };
  };
  const bytesOfService = () =>
    [...sockets].reduce((sum, socket) => sum + socket.bytesRead + socket.bytesWritten, 0);
  return { ...s3, service, connect, bytesOfService, file: path.join(service.folder, "file") };
}

function sha256Of(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

test("workers read and write files in the bucket, not through the service", { skip }, async (t) => {
  const { service, connect, bytesOfService, file } = await openWorkerStore(t);
  const { store } = await connect("one");
  const content = randomBytes(20 * mebibyte);
  await writeFile(file, content);
  const sha256 = sha256Of(content);
  assert.deepEqual(await store.writeFile(file), { sha256, bytes: content.length });
  assert.deepEqual(await service.blobs.find(sha256), { bytes: content.length });
  await store.materialize(sha256, `${file}-2`);
  assert.equal(sha256Of(await readFile(`${file}-2`)), sha256);
  const share = bytesOfService() / (2 * content.length);
  t.diagnostic(`through the service: ${(share * 100).toFixed(3)} % of the bytes`);
  assert.ok(share < 0.01);
});

test("a direct transfer goes on after broken connections", { skip }, async (t) => {
  const { faults, requests, connect, file } = await openWorkerStore(t);
  const { store } = await connect("one");
  const content = randomBytes(9 * mebibyte);
  await writeFile(file, content);
  const { sha256 } = await store.writeFile(file);
  const pass = () => false;
  requests.length = 0;
  faults.push(pass, cutAfter(4 * mebibyte), pass, slowDown);
  await store.materialize(sha256, `${file}-2`);
  assert.equal(sha256Of(await readFile(`${file}-2`)), sha256);
  const reads = requests.filter((request) => request.startsWith("GET"));
  assert.equal(reads.length, 3);
  for (const read of reads.slice(1)) assert.match(read, /bytes=[1-9]\d{5,}-$/);
});

test(
  "the bucket refuses a file with another hash, and its address is only for that",
  { skip },
  async (t) => {
    const { service, connect } = await openWorkerStore(t);
    const { requestService } = await connect("one");
    const sha256 = sha256Of(Buffer.from("promised"));
    const answer = await requestService({
      method: "POST",
      path: `/blobs/${sha256}/upload`,
      headers: () => ({ "content-type": "application/json" }),
      body: () => JSON.stringify({ bytes: 8 }),
      statuses: [200],
      readAnswer: async ({ body }) => uploadAnswer.parse(await body.json()),
    });
    assert.ok(answer.to === "storage");
    const put = async (headers: Record<string, string>) => {
      const refused = await fetch(answer.url, { method: "PUT", body: "intruder", headers });
      await refused.text();
      return refused.status;
    };
    assert.equal(await put(answer.headers), 400);
    assert.equal(await put({}), 403);
    assert.equal(await service.blobs.find(sha256), undefined);
  },
);

test("a worker that knows a hash but not the file gets nothing", { skip }, async (t) => {
  const { service, connect, file } = await openWorkerStore(t);
  const { sha256 } = await service.blobs.write(Readable.from([Buffer.from("of another job")]));
  const { requestService, store } = await connect("one");
  const claim = requestService({
    method: "POST",
    path: `/blobs/${sha256}/stored`,
    statuses: [200],
    readAnswer: async ({ body }) => body.json(),
  });
  await assert.rejects(claim, /answered 404/);
  await assert.rejects(store.materialize(sha256, file), /answered 404/);
});

test("a file that two jobs make is each one's", { skip }, async (t) => {
  const { service, connect, file } = await openWorkerStore(t);
  await writeFile(file, "made twice");
  for (const token of ["one", "two"]) {
    const { store, jobId } = await connect(token);
    const { sha256 } = await store.writeFile(file);
    assert.ok(await service.records.jobBlobs.has(jobId, sha256));
    await store.materialize(sha256, `${file}-${token}`);
    assert.equal(await readFile(`${file}-${token}`, "utf8"), "made twice");
  }
});
