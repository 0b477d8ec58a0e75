import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import test, { type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { getRequestListener } from "@hono/node-server";
import { z } from "zod";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import type { ProducingJob } from "../../src/records/jobs/batch-records.ts";
import { writeBatchArchive } from "../../src/server/handlers/batch-archive.ts";
import { listen } from "../../src/service/http-server/listen.ts";
import { openS3BlobStore } from "../../src/storage/s3/s3-blob-store.ts";
import { startS3Server } from "../storage/s3-server.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { beginTestWorker, makeTestApp, problemIn } from "./test-app.ts";

const manifestSchema = z.object({
  batchId: z.string(),
  files: z.array(
    z.object({ path: z.string(), jobId: z.string(), sha256: z.string(), bytes: z.int() }),
  ),
});

/** A batch of two jobs with a file each, and one without. */
async function producedBatch(t: TestContext) {
  const app = await makeTestApp(t);
  const models = ["one", "two", "three"].map((name) => {
    return { name, source: `https://models.example/${name}.onnx` };
  });
  const answer = await app.ask("POST /v1/batches", { body: { models, targets: ["cpu"] } });
  const { id, jobs } = batchSchema.parse(await answer.json());
  const stored: string[] = [];
  for (const job of jobs.slice(0, 2)) {
    const worker = await beginTestWorker(app, job.id);
    const blob = await worker.store(`result of ${job.model}`);
    stored.push(blob.sha256);
    await worker.report(
      { type: "status", status: "Sharding" },
      { type: "artifact", artifact: { name: "model.onnx", kind: "model", ...blob } },
    );
  }
  return { app, id, jobs, stored, path: `/v1/batches/${id}/artifacts` };
}

/** What is in an archive, as another program reads it: names and contents in order. */
async function readArchive(t: TestContext, archive: AsyncIterable<Uint8Array>) {
  const folder = await mkdtemp(join(tmpdir(), "archive-"));
  t.after(() => rm(folder, { recursive: true }));
  const tar = spawn("tar", ["-x", "-v", "-C", folder], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(tar, "exit");
  const [listed] = await Promise.all([text(tar.stdout), pipeline(archive, tar.stdin)]);
  assert.deepEqual(await ended, [0, null]);
  const names = listed.trimEnd().split("\n");
  const contents = names.map((name) => readFile(join(folder, name), "utf8"));
  return { names, contents: await Promise.all(contents) };
}

test("a batch's files come as one archive, behind a manifest with their hashes", async (t) => {
  const { app, id, jobs, stored, path } = await producedBatch(t);
  const answer = await app.ask(`GET ${path}`);
  assert.equal(answer.headers.get("content-type"), "application/x-tar");
  assert.equal(answer.headers.get("content-disposition"), `attachment; filename="${id}.tar"`);
  assert.ok(answer.body);
  const { names, contents } = await readArchive(t, answer.body);
  const [manifest = "", ...files] = contents;
  const paths = ["one-for-cpu/model.onnx", "two-for-cpu/model.onnx"];
  assert.deepEqual(names, ["manifest.json", ...paths]);
  assert.deepEqual(files, ["result of one", "result of two"]);
  const described = manifestSchema.parse(JSON.parse(manifest));
  assert.equal(described.batchId, id);
  assert.deepEqual(
    described.files.map((file) => [file.path, file.jobId, file.sha256]),
    paths.map((file, i) => [file, jobs[i]?.id, stored[i]]),
  );
});

test("HEAD of an archive reads no file", async (t) => {
  const { app, path } = await producedBatch(t);
  const read = t.mock.method(app.blobs, "read");
  assert.equal((await app.ask(`HEAD ${path}`)).status, 200);
  assert.equal(read.mock.callCount(), 0);
});

test("an archive does not begin where a file of it is missing", async (t) => {
  const { app, jobs, path, stored } = await producedBatch(t);
  await app.blobs.delete(stored[1] ?? "", new Date(Date.now() + 60_000));
  const answer = await app.ask(`GET ${path}`);
  assert.equal(answer.status, 410);
  const { code, detail } = await problemIn(answer);
  assert.equal(code, "artifact_missing");
  assert.ok(detail.startsWith(`"model.onnx" of job "${jobs[1]?.id}" is not stored any more`));
});

test("the connection breaks where a file of the archive goes missing meanwhile", async (t) => {
  const { app, path, stored } = await producedBatch(t);
  await app.blobs.delete(stored[1] ?? "", new Date(Date.now() + 60_000));
  t.mock.method(app.blobs, "find", async () => ({ bytes: 1 }));
  const listener = getRequestListener(app.app.fetch);
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  const url = await listen(server, { host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  const headers = { authorization: `Bearer ${app.admin}` };
  const answer = await fetch(`${url}${path}`, { headers });
  assert.equal(answer.status, 200);
  await assert.rejects(answer.arrayBuffer(), /terminated/);
});

const sha256 = "a".repeat(64);
const at = "2026-01-01T00:00:00.000Z";

const jobId = (index: number) => `job-${String(index).padStart(26, "0")}`;

function producingJob(name: string, bytes: number, index = 0): ProducingJob {
  const artifacts = [{ name: "model.onnx", kind: "model" as const, bytes, sha256 }];
  const id = jobId(index);
  return { id, name, status: "Completed", createdAt: at, finishedAt: at, artifacts };
}

const batchId = `batch-${"0".repeat(26)}`;

test("names of jobs lead to no folder outside, and to one folder each", async (t) => {
  const names = ["../../etc", "a/b", "A b", "a-b", "..", "模型", "long ".repeat(40)];
  const blobs = { read: () => Readable.from([Buffer.from("x")]) };
  const jobs = names.map((name, index) => producingJob(name, 1, index));
  const read = await readArchive(
    t,
    writeBatchArchive(blobs, batchId, () => jobs),
  );
  const folders = [
    "etc",
    "a-b",
    "A-b-2",
    "a-b-3",
    jobId(4),
    jobId(5),
    "long-".repeat(40).slice(0, -1),
  ];
  assert.deepEqual(read.names, ["manifest.json", ...folders.map((name) => `${name}/model.onnx`)]);
});

test("a file is read when the reader comes to it, and closed when the reader goes", async () => {
  const piece = Buffer.alloc(65_536);
  const opened: Readable[] = [];
  const blobs = {
    read() {
      const stream = Readable.from(Array.from({ length: 64 }, () => piece));
      opened.push(stream);
      return stream;
    },
  };
  const jobs = ["one", "two", "three"].map((name, index) => {
    return producingJob(name, 64 * piece.length, index);
  });
  let read = 0;
  for await (const each of writeBatchArchive(blobs, batchId, () => jobs)) {
    read += each.length;
    if (opened.length === 2) break;
  }
  assert.ok(read > 60 * piece.length && read < 66 * piece.length, `${read} bytes`);
  assert.deepEqual(
    opened.map(({ destroyed }) => destroyed),
    [true, true],
  );
});

for (const content of ["short", "too long"]) {
  test(`a file of another size than its artifact fails the archive: ${content}`, async () => {
    const blobs = { read: () => Readable.from([Buffer.from(content)]) };
    const archive = writeBatchArchive(blobs, batchId, () => [producingJob("one", 6)]);
    await assert.rejects(buffer(archive), /Size mismatch/);
  });
}

test("a file of more than 8 GiB is whole, and so is the archive", async () => {
  const piece = Buffer.alloc(64 * 1024 ** 2);
  const pieces = (9 * 1024 ** 3) / piece.length;
  const blobs = { read: () => Readable.from(Array.from({ length: pieces }, () => piece)) };
  const bytes = pieces * piece.length;
  const tar = spawn("tar", ["-t", "-v"], { stdio: ["pipe", "pipe", "inherit"] });
  const archive = writeBatchArchive(blobs, batchId, () => [producingJob("large", bytes)]);
  const [listed] = await Promise.all([text(tar.stdout), pipeline(archive, tar.stdin)]);
  assert.match(listed, new RegExp(` ${bytes} .* large/model.onnx`));
});

test("an archive of blobs in a bucket has their content", { skip: s3Missing }, async (t) => {
  const { access } = await startS3Server(t);
  const store = await openS3BlobStore(access);
  t.after(() => store[Symbol.asyncDispose]());
  const content = "in a bucket ".repeat(1024 ** 2);
  const blob = await store.write(Readable.from([Buffer.from(content)]));
  const job = producingJob("one", blob.bytes);
  const artifacts = job.artifacts.map((artifact) => ({ ...artifact, ...blob }));
  const archive = writeBatchArchive(store, batchId, () => [{ ...job, artifacts }]);
  const { contents } = await readArchive(t, archive);
  assert.ok(contents[1] === content);
});

/** With the heap that the worker has, its jobs' lists of files do not fit at once. */
const readManyFiles = `
import { parentPort, workerData } from "node:worker_threads";
import { Readable } from "node:stream";
const { writeBatchArchive } = await import(workerData.module);
const { job, jobs, files } = workerData;
function* readJobs() {
  for (let at = 0; at < jobs; at++) {
    const artifacts = Array.from({ length: files }, (_, i) => ({ ...job.artifacts[0], name: "w-" + i }));
    yield { ...job, id: job.id + at, artifacts };
  }
}
const blobs = { read: () => Readable.from([Buffer.from("x")]) };
let bytes = 0;
let size;
for await (const piece of writeBatchArchive(blobs, "batch", readJobs)) {
  size ??= 512 + parseInt(piece.subarray(124, 136).toString(), 8);
  bytes += piece.length;
  if (bytes > size) break;
}
parentPort.postMessage(size);
`;

test("a batch of hundreds of thousands of files takes the memory of one job's", async () => {
  const module = new URL("../../src/server/handlers/batch-archive.ts", import.meta.url).href;
  const [jobs, files] = [300, 1000];
  const workerData = { module, job: producingJob("one", 1), jobs, files };
  const resourceLimits = { maxOldGenerationSizeMb: 40 };
  const worker = new Worker(readManyFiles, { eval: true, workerData, resourceLimits });
  const [size] = z.tuple([z.number()]).parse(await once(worker, "message"));
  assert.ok(size > jobs * files * 100);
});
