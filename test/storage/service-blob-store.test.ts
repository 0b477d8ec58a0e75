import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import path from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import type { DiagnosticsChannel } from "undici";
import { problemDetails, ServiceError } from "../../src/contract/errors.ts";
import { createServiceBlobStore } from "../../src/storage/service-blob-store.ts";
import { createServiceConnection } from "../../src/worker/service-connection.ts";
import { mountSmallDisk } from "../support/mount-small-disk.ts";
import { startPodService } from "../worker/pod-service.ts";

const megabyte = 1024 * 1024;
const timeouts = { start: 10_000, events: 10_000, files: 10_000, token: 0 };

/** The store as the worker of a job sees it, and the requests that reach the service. */
async function openStore(t: TestContext, { token = "token", files = timeouts.files } = {}) {
  const service = await startPodService(t);
  const id = await service.createJob({ source: "https://models.test/net.onnx", name: "net" });
  service.tokens.set("token", { podUid: "pod", part: null });
  const requests: string[] = [];
  const faults: ((request: IncomingMessage, response: ServerResponse) => boolean)[] = [];
  service.onRequest = (request, response) => {
    requests.push(`${request.method} ${request.headers.range ?? ""}`.trim());
    return faults.shift()?.(request, response) ?? false;
  };
  const settings = {
    url: service.url,
    jobId: id,
    token: () => token,
    timeouts: { ...timeouts, files },
  };
  const store = createServiceBlobStore(createServiceConnection(settings).requestService);
  const target = path.join(service.folder, "target");
  /** Stores a file of the job. */
  const provide = async (content: Uint8Array) => {
    const blob = await service.blobs.write(Readable.from([content]));
    await service.records.jobBlobs.add(id, blob);
    return blob.sha256;
  };
  return { service, store, provide, requests, faults, target };
}

function sha256Of(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Answers 503 as a service does that is starting. */
function unavailable(_: IncomingMessage, response: ServerResponse): boolean {
  response.writeHead(503).end();
  return true;
}

/** Breaks the connection when so many bytes of the answer were written. */
function cutAfter(bytes: number) {
  return ({ socket }: IncomingMessage, response: ServerResponse): boolean => {
    const write = response.write.bind(response);
    let left = bytes;
    response.write = (chunk: Uint8Array) => {
      left -= chunk.length;
      if (left >= 0) return write(chunk);
      setTimeout(() => socket.destroy(), 100);
      return true;
    };
    return false;
  };
}

test("writeFile() stores a file once, and materialize() gives it back", async (t) => {
  const { service, store, requests, target } = await openStore(t);
  const content = randomBytes(3 * megabyte);
  const sha256 = sha256Of(content);
  await writeFile(target, content);
  assert.equal(await store.find(sha256), undefined);
  for (let i = 0; i < 2; i++)
    assert.deepEqual(await store.writeFile(target), { sha256, bytes: content.length });
  assert.deepEqual(requests, ["HEAD", "POST", "PUT", "POST"]);
  assert.deepEqual(await store.find(sha256), { bytes: content.length });
  assert.deepEqual(await buffer(service.blobs.read(sha256)), content);
  await store.materialize(sha256, `${target}-2`);
  assert.deepEqual(await readFile(`${target}-2`), content);
});

test("materialize() goes on behind the last byte after broken connections and outages", async (t) => {
  const { store, provide, requests, faults, target } = await openStore(t);
  const content = randomBytes(8 * megabyte);
  const sha256 = await provide(content);
  faults.push(cutAfter(3 * megabyte), unavailable, cutAfter(2 * megabyte));
  await store.materialize(sha256, target);
  assert.deepEqual(await readFile(target), content);
  const starts = requests
    .slice(1)
    .map((request) => Number(/^GET bytes=(\d+)-$/.exec(request)?.[1]));
  assert.equal(starts.length, 3);
  assert.equal(starts[0], starts[1]);
  assert((starts[0] ?? 0) > megabyte && (starts[2] ?? 0) > (starts[1] ?? 0), requests.join(", "));
});

test("materialize() leaves no file where the service sends other bytes", async (t) => {
  const { service, store, provide, target } = await openStore(t);
  const sha256 = await provide(randomBytes(megabyte));
  const stored = path.join(service.folder, "service/blobs", sha256.slice(0, 2), sha256);
  await chmod(stored, 0o644);
  await writeFile(stored, randomBytes(megabyte));
  await assert.rejects(store.materialize(sha256, target), new RegExp(`as ${sha256}`));
  assert.equal((await readdir(service.folder)).includes("target"), false);
});

test("materialize() fails with storage_full where the file does not fit", async (t) => {
  const disk = await mountSmallDisk(t);
  if (disk === undefined) return t.skip("Needs the right to mount a small file system");
  const { store, provide } = await openStore(t);
  const sha256 = await provide(randomBytes(8 * megabyte));
  await assert.rejects(store.materialize(sha256, path.join(disk, "target")), {
    code: "storage_full",
  });
  assert.deepEqual(await readdir(disk), []);
});

test("writeFile() sends a file again where the connection broke while it was sent", async (t) => {
  const { service, store, requests, faults, target } = await openStore(t);
  const content = randomBytes(16 * megabyte);
  await writeFile(target, content);
  const cut = ({ socket }: IncomingMessage) => {
    setImmediate(() => socket.destroy());
    return false;
  };
  faults.push(() => false, cut, unavailable);
  const { sha256 } = await store.writeFile(target);
  assert.deepEqual(requests, ["POST", "PUT", "PUT", "PUT"]);
  assert.deepEqual(await buffer(service.blobs.read(sha256)), content);
});

test("writeFile() is not given up while each try gets further, however long that takes", async (t) => {
  const { service, store, faults, target } = await openStore(t, { files: 1 });
  const content = randomBytes(40 * megabyte);
  await writeFile(target, content);
  /** Reads so many bytes of a request, and breaks the connection. */
  const cutUpload = (bytes: number) => (request: IncomingMessage) => {
    let left = bytes;
    request.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left <= 0) request.socket.destroy();
    });
    return true;
  };
  faults.push(() => false, cutUpload(1), cutUpload(16 * megabyte), cutUpload(30 * megabyte));
  const { sha256 } = await store.writeFile(target);
  assert.deepEqual(await buffer(service.blobs.read(sha256)), content);
});

test("writeFile() is given up where no try gets further", async (t) => {
  const { store, requests, faults, target } = await openStore(t, { files: 1 });
  await writeFile(target, randomBytes(2 * megabyte));
  const fail = (request: IncomingMessage, response: ServerResponse) => {
    request.resume().on("end", () => response.writeHead(500).end());
    return true;
  };
  faults.push(() => false, fail, fail, fail);
  await assert.rejects(store.writeFile(target), /The service answered 500/);
  assert.deepEqual(requests, ["POST", "PUT", "PUT"]);
});

test("writeFile() sends a file from the same memory, however large it is", async (t) => {
  const { service, store, target } = await openStore(t);
  const content = randomBytes(8 * megabyte + 1);
  await writeFile(target, content);
  const memory = new Set<ArrayBufferLike>();
  const note = (message: unknown) => {
    const { request, chunk } = message as DiagnosticsChannel.RequestBodyChunkSentMessage;
    if (request.method === "PUT" && chunk instanceof Uint8Array) memory.add(chunk.buffer);
  };
  subscribe("undici:request:bodyChunkSent", note);
  t.after(() => unsubscribe("undici:request:bodyChunkSent", note));
  const { sha256 } = await store.writeFile(target);
  assert.deepEqual(await buffer(service.blobs.read(sha256)), content);
  assert(memory.size > 0 && memory.size <= 2, `${memory.size} buffers`);
});

test("writeFile() fails with storage_full where the service has no room", async (t) => {
  const { store, faults, target } = await openStore(t);
  await writeFile(target, "content");
  const full = (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(507).end();
    return true;
  };
  faults.push(() => false, full);
  await assert.rejects(store.writeFile(target), { code: "storage_full" });
});

test("writeFile() fails at once where the project stores as much as it may", async (t) => {
  const { store, faults, target } = await openStore(t);
  await writeFile(target, "content");
  const full = (_: IncomingMessage, response: ServerResponse) => {
    const problem = problemDetails(new ServiceError("too_many_bytes", "No room"));
    const headers = { "content-type": "application/problem+json" };
    response.writeHead(problem.status, headers).end(JSON.stringify(problem));
    return true;
  };
  faults.push(() => false, full);
  await assert.rejects(store.writeFile(target), { code: "too_many_bytes" });
});

test("the store is given up when the service stays away", async (t) => {
  const { service, store } = await openStore(t, { files: 300 });
  await service.stop();
  await assert.rejects(
    store.find("0".repeat(64)),
    /requests have failed for \d+ s: .*ECONNREFUSED/,
  );
});

test("the store is closed to all but workers of the job", async (t) => {
  const { service, store, target } = await openStore(t, { token: "another" });
  const { sha256 } = await service.blobs.write(Readable.from([Buffer.from("secret")]));
  await assert.rejects(store.materialize(sha256, target), /answered 401/);
  await mkdir(`${target}-folder`);
  await writeFile(`${target}-folder/file`, "intruder");
  await assert.rejects(store.writeFile(`${target}-folder/file`), /answered 401/);
});

test("a transfer ends when it is aborted", async (t) => {
  const { service, store, faults, target } = await openStore(t);
  const { sha256 } = await service.blobs.write(Readable.from([randomBytes(4 * megabyte)]));
  const stop = new AbortController();
  faults.push((_, response) => {
    response.writeHead(200, { "content-length": 4 * megabyte });
    response.write("begin");
    setImmediate(() => stop.abort(new Error("Stopped")));
    return true;
  });
  await assert.rejects(store.materialize(sha256, target, stop.signal), /Stopped/);
  assert.equal((await readdir(service.folder)).includes("target"), false);
});
