import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { mountSmallDisk } from "../support/mount-small-disk.ts";

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "blobs-"));
  t.after(async () => rm(folder, { recursive: true }));
  return folder;
}

function sha256Of(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

async function* streamChunks(...chunks: string[]) {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

async function bytesIn(folder: string): Promise<number> {
  const files = await Promise.all(
    (await filesIn(folder)).map((name) => stat(path.join(folder, name))),
  );
  return files.reduce((sum, { size }) => sum + size, 0);
}

test("write() stores content that find() and read() give back", async (t) => {
  const store = await createDirectoryBlobStore(await temporaryFolder(t));
  const blob = await store.write(streamChunks("one ", "two"));
  assert.deepEqual(blob, { sha256: sha256Of("one two"), bytes: 7 });
  assert.deepEqual(await store.find(blob.sha256), { bytes: 7 });
  assert.equal((await buffer(store.read(blob.sha256))).toString(), "one two");
  assert.equal((await buffer(store.read(blob.sha256, { start: 2, end: 4 }))).toString(), "e t");
});

test("find() knows nothing of content that was never stored", async (t) => {
  const store = await createDirectoryBlobStore(await temporaryFolder(t));
  assert.equal(await store.find(sha256Of("x")), undefined);
});

test("write() refuses content with another hash and keeps nothing", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  await assert.rejects(store.write(streamChunks("x"), { expectedSha256: sha256Of("y") }), {
    code: "model_checksum_mismatch",
    message: `Content has SHA-256 ${sha256Of("x")}, expected ${sha256Of("y")}`,
  });
  assert.deepEqual(await filesIn(folder), []);
});

test("write() stops at the size limit and keeps nothing", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  await assert.rejects(store.write(streamChunks("1234", "5"), { maxBytes: 4 }), {
    code: "payload_too_large",
  });
  assert.deepEqual(await filesIn(folder), []);
});

test("write() ends at once when aborted, though its source is stuck, and keeps nothing", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  const abort = new AbortController();
  const stuck = new ReadableStream<Uint8Array>({
    pull(stream) {
      if (abort.signal.aborted) return;
      stream.enqueue(Buffer.from("begin"));
      setImmediate(() => abort.abort());
      return new Promise(() => {});
    },
  });
  await assert.rejects(store.write(stuck, { signal: abort.signal }), { name: "AbortError" });
  assert.deepEqual(await filesIn(folder), []);
});

test("write() keeps nothing of a source that fails", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  const failing = async function* () {
    yield Buffer.from("begin");
    throw new Error("Connection lost");
  };
  await assert.rejects(store.write(failing()), { message: "Connection lost" });
  assert.deepEqual(await filesIn(folder), []);
});

test("write() of the same content by several writers at once succeeds for each", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  const blobs = await Promise.all(
    Array.from({ length: 8 }, async () => store.write(streamChunks("same"))),
  );
  assert.equal(new Set(blobs.map((blob) => blob.sha256)).size, 1);
  assert.deepEqual(await filesIn(folder), [sha256Of("same")]);
});

test("write() says that the disk is full and keeps nothing", async (t) => {
  const folder = await mountSmallDisk(t);
  if (folder === undefined) return t.skip("Needs the right to mount a small file system");
  const store = await createDirectoryBlobStore(folder);
  await assert.rejects(store.write(streamChunks("x".repeat(200_000))), { code: "storage_full" });
  assert.deepEqual(await filesIn(folder), []);
  await store.write(streamChunks("small"));
});

test("createDirectoryBlobStore() removes what dead writers left and nothing else", async (t) => {
  const folder = await temporaryFolder(t);
  const incoming = path.join(folder, "incoming");
  await mkdir(incoming);
  const ended = spawnSync("true").pid;
  const elsewhere = "other-machine.1.b";
  const names = [
    `${hostname()}.${ended}.a`,
    elsewhere,
    `${hostname()}.${process.pid}.c`,
    "other-machine.1.d",
  ];
  for (const name of names) await writeFile(path.join(incoming, name), "");
  const longAgo = new Date(Date.now() - 48 * 60 * 60 * 1000);
  await utimes(path.join(incoming, "other-machine.1.d"), longAgo, longAgo);
  await createDirectoryBlobStore(folder);
  assert.deepEqual(
    (await filesIn(folder)).sort(),
    [`${hostname()}.${process.pid}.c`, elsewhere].sort(),
  );
});

test("receive() keeps what arrived for a day, whatever becomes of its process", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  const upload = { sha256: sha256Of("one two"), project: "default", owner: "one" };
  const failing = async function* () {
    yield Buffer.from("one ");
    while ((await bytesIn(path.join(folder, "incoming"))) < 4) await new Promise(setImmediate);
    throw new Error("Connection lost");
  };
  await assert.rejects(store.receive(upload, failing()), { message: "Connection lost" });
  const restarted = await createDirectoryBlobStore(folder);
  assert.deepEqual(await restarted.findPartial(upload), { bytes: 4 });
  const [file = ""] = await filesIn(folder);
  const longAgo = new Date(Date.now() - 25 * 60 * 60 * 1000);
  await utimes(path.join(folder, "incoming", file), longAgo, longAgo);
  await restarted.purge();
  assert.deepEqual(await filesIn(folder), []);
});

test("receive() says that the disk is full and keeps nothing", async (t) => {
  const folder = await mountSmallDisk(t);
  if (folder === undefined) return t.skip("Needs the right to mount a small file system");
  const store = await createDirectoryBlobStore(folder);
  const upload = { sha256: sha256Of("x"), project: "default", owner: "one" };
  await assert.rejects(store.receive(upload, streamChunks("x".repeat(200_000))), {
    code: "storage_full",
  });
  assert.deepEqual(await filesIn(folder), []);
});

test("materialize() puts the content at a path", async (t) => {
  const folder = await temporaryFolder(t);
  const store = await createDirectoryBlobStore(folder);
  const { sha256 } = await store.write(streamChunks("model"));
  await store.materialize(sha256, path.join(folder, "model.onnx"));
  assert.equal(await readFile(path.join(folder, "model.onnx"), "utf8"), "model");
});
