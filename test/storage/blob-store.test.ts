import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, test, type TestContext } from "node:test";
import { inspect } from "node:util";
import type { BlobFiles, BlobStore } from "../../src/storage/blob-store.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { openS3BlobStore } from "../../src/storage/s3/s3-blob-store.ts";
import { createS3Client } from "../../src/storage/s3/s3-client.ts";
import { createServiceBlobStore } from "../../src/storage/service-blob-store.ts";
import { createServiceConnection } from "../../src/worker/service-connection.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { startPodService } from "../worker/pod-service.ts";
import { cutStream, filesIn, sha256Of, stream } from "./blob-content.ts";
import { type S3Server, startS3Server } from "./s3-server.ts";

// What every store of blobs does. What only one does is in the test file of its name.

const mebibyte = 1024 ** 2;
const day = 24 * 60 * 60 * 1000;

interface OpenedFiles {
  readonly files: BlobFiles;
  /** Stores content so that the files have it. */
  readonly provide: (content: Uint8Array) => Promise<string>;
  /** Where the store keeps its files. */
  readonly folder: string;
}

interface OpenedStore {
  readonly store: BlobStore;
  /** The same store, as another process opens it. */
  readonly reopen: () => Promise<BlobStore>;
  readonly folder: string;
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "blobs-"));
  t.after(async () => rm(folder, { recursive: true }));
  return folder;
}

async function openDirectory(t: TestContext): Promise<OpenedStore> {
  const folder = await temporaryFolder(t);
  const reopen = () => createDirectoryBlobStore(folder);
  return { store: await reopen(), reopen, folder };
}

const used = new AsyncDisposableStack();
after(() => used.disposeAsync());
let server: Promise<S3Server> | undefined;

/** A bucket of a server that all tests of this file share. */
async function openBucket(t: TestContext): Promise<OpenedStore> {
  server ??= startS3Server({ after: (work: () => Promise<void>) => used.defer(work) });
  const { access, folder } = await server;
  const bucket = `test-${randomUUID()}`;
  const reopen = async () => {
    const store = await openS3BlobStore({ ...access, bucket });
    t.after(() => store[Symbol.asyncDispose]());
    return store;
  };
  await using client = createS3Client({ ...access, bucket });
  await client.send({ method: "PUT", key: "" });
  return { store: await reopen(), reopen, folder: path.join(path.dirname(folder), bucket) };
}

/** The store as the worker of a job sees it. */
async function openThroughService(t: TestContext): Promise<OpenedFiles> {
  const service = await startPodService(t);
  const id = await service.createJob({ source: "https://models.test/net.onnx", name: "net" });
  service.tokens.set("token", { podUid: "pod", part: null });
  const timeouts = { start: 10_000, events: 10_000, files: 10_000, token: 0 };
  const settings = { url: service.url, jobId: id, token: () => "token", timeouts };
  return {
    files: createServiceBlobStore(createServiceConnection(settings).requestService),
    async provide(content) {
      const blob = await service.blobs.write(stream(content));
      await service.records.jobBlobs.add(id, blob);
      return blob.sha256;
    },
    folder: path.join(service.folder, "service"),
  };
}

const stores: readonly (readonly [
  name: string,
  open: (t: TestContext) => Promise<OpenedStore>,
  skip: string | false,
])[] = [
  ["a folder", openDirectory, false],
  ["a bucket", openBucket, s3Missing],
];

function asFiles(open: (t: TestContext) => Promise<OpenedStore>) {
  return async (t: TestContext): Promise<OpenedFiles> => {
    const { store, folder } = await open(t);
    const provide = async (content: Uint8Array) => (await store.write(stream(content))).sha256;
    return { files: store, provide, folder };
  };
}

const sizes: readonly (readonly [name: string, bytes: number])[] = [
  ["nothing", 0],
  ["a few bytes", 1000],
  ["exactly two parts of a bucket", 16 * mebibyte],
  ["several parts of a bucket", 20 * mebibyte + 7],
];

for (const [name, open, skip] of [
  ...stores.map(([where, opened, missing]) => [where, asFiles(opened), missing] as const),
  ["the service", openThroughService, false] as const,
]) {
  for (const [what, bytes] of sizes) {
    test(
      `${name}: writeFile() stores ${what}, which materialize() gives back`,
      { skip },
      async (t) => {
        const { files, folder } = await open(t);
        const content = randomBytes(bytes);
        const sha256 = sha256Of(content);
        const file = path.join(await temporaryFolder(t), "model.onnx");
        await writeFile(file, content);
        assert.equal(await files.find(sha256), undefined);
        assert.deepEqual(await files.writeFile(file), { sha256, bytes });
        assert.deepEqual(await files.find(sha256), { bytes });
        assert.deepEqual(await filesIn(folder), [sha256]);
        await files.materialize(sha256, `${file}-2`);
        assert.ok(content.equals(await readFile(`${file}-2`)));
      },
    );
  }

  test(
    `${name}: writeFile() refuses a file with another hash and keeps nothing`,
    { skip },
    async (t) => {
      const { files, folder } = await open(t);
      const file = path.join(await temporaryFolder(t), "model.onnx");
      await writeFile(file, "changed meanwhile");
      const expectedSha256 = sha256Of("original");
      const writing = files.writeFile(file, { expectedSha256 });
      await assert.rejects(writing, (error) => /model_checksum_mismatch/.test(inspect(error)));
      assert.equal(await files.find(expectedSha256), undefined);
      assert.deepEqual(await filesIn(folder), []);
    },
  );

  test(`${name}: materialize() of what was never stored leaves no file`, { skip }, async (t) => {
    const { files } = await open(t);
    const folder = await temporaryFolder(t);
    await assert.rejects(files.materialize(sha256Of("x"), path.join(folder, "model.onnx")));
    assert.deepEqual(await readdir(folder), []);
  });

  test(
    `${name}: materializeRanges() writes ranges, also over parts, to their places`,
    { skip },
    async (t) => {
      const { files, provide } = await open(t);
      const content = randomBytes(17 * mebibyte);
      const sha256 = await provide(content);
      const file = path.join(await temporaryFolder(t), "model.onnx");
      const expected = Buffer.alloc(content.length);
      await writeFile(file, expected);
      const ranges = [
        { start: 0, end: 0 },
        { start: 8 * mebibyte - 3, end: 8 * mebibyte + 4 },
        { start: content.length - 5, end: content.length - 1 },
      ];
      for (const { start, end } of ranges) content.copy(expected, start, start, end + 1);
      await files.materializeRanges(sha256, file, { ranges });
      assert.ok(expected.equals(await readFile(file)));
    },
  );
}

for (const [name, open, skip] of stores) {
  for (const [what, bytes] of sizes) {
    test(
      `${name}: write() stores ${what}, which find() and read() give back`,
      { skip },
      async (t) => {
        const { store, folder } = await open(t);
        const content = randomBytes(bytes);
        const blob = await store.write(stream(content));
        assert.deepEqual(blob, { sha256: sha256Of(content), bytes });
        assert.deepEqual(await store.find(blob.sha256), { bytes });
        assert.equal(sha256Of(await buffer(store.read(blob.sha256))), blob.sha256);
        assert.deepEqual(await filesIn(folder), [blob.sha256]);
      },
    );
  }

  test(`${name}: read() gives a range, also over parts`, { skip }, async (t) => {
    const { store } = await open(t);
    const content = randomBytes(17 * mebibyte);
    const { sha256 } = await store.write(stream(content));
    const [start, end] = [8 * mebibyte - 3, 8 * mebibyte + 4];
    const range = await buffer(store.read(sha256, { start, end }));
    assert.deepEqual(range, content.subarray(start, end + 1));
  });

  test(`${name}: what was never stored is not found, and cannot be read`, { skip }, async (t) => {
    const { store } = await open(t);
    assert.equal(await store.find(sha256Of("x")), undefined);
    await assert.rejects(buffer(store.read(sha256Of("x"))), { code: "ENOENT" });
  });

  test(
    `${name}: write() refuses content with another hash and keeps nothing`,
    { skip },
    async (t) => {
      const { store, folder } = await open(t);
      const content = randomBytes(9 * mebibyte);
      const writing = store.write(stream(content), { expectedSha256: sha256Of("y") });
      await assert.rejects(writing, {
        code: "model_checksum_mismatch",
        message: `Content has SHA-256 ${sha256Of(content)}, expected ${sha256Of("y")}`,
      });
      assert.deepEqual(await filesIn(folder), []);
    },
  );

  test(`${name}: write() stops at the size limit and keeps nothing`, { skip }, async (t) => {
    const { store, folder } = await open(t);
    const writing = store.write(stream(randomBytes(9 * mebibyte)), { maxBytes: 9 * mebibyte - 1 });
    await assert.rejects(writing, { code: "payload_too_large" });
    assert.deepEqual(await filesIn(folder), []);
  });

  test(`${name}: write() keeps nothing of a source that fails`, { skip }, async (t) => {
    const { store, folder } = await open(t);
    const writing = store.write(cutStream(randomBytes(9 * mebibyte)));
    await assert.rejects(writing, { message: "Connection lost" });
    assert.deepEqual(await filesIn(folder), []);
  });

  test(
    `${name}: write() ends at once when aborted, though its source is stuck`,
    { skip },
    async (t) => {
      const { store, folder } = await open(t);
      const abort = new AbortController();
      const stuck = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (abort.signal.aborted) return;
          controller.enqueue(Buffer.from("begin"));
          setImmediate(() => abort.abort());
          return new Promise(() => {});
        },
      });
      const writing = store.write(stuck, { signal: abort.signal });
      await assert.rejects(writing, { name: "AbortError" });
      assert.deepEqual(await filesIn(folder), []);
    },
  );

  test(`${name}: several writers of the same content at once succeed`, { skip }, async (t) => {
    const { store, folder } = await open(t);
    const content = randomBytes(9 * mebibyte);
    const writes = Array.from({ length: 8 }, async () => store.write(stream(content)));
    assert.equal(new Set((await Promise.all(writes)).map(({ sha256 }) => sha256)).size, 1);
    assert.deepEqual(await filesIn(folder), [sha256Of(content)]);
  });

  test(
    `${name}: delete() removes what was stored before the time, and nothing later`,
    { skip },
    async (t) => {
      const { store, folder } = await open(t);
      const { sha256 } = await store.write(Readable.from([Buffer.from("model")]));
      await store.delete(sha256, new Date(Date.now() - day));
      assert.deepEqual(await store.find(sha256), { bytes: 5 });
      for (let i = 0; i < 2; i++) await store.delete(sha256, new Date(Date.now() + day));
      assert.deepEqual(await filesIn(folder), []);
    },
  );

  const kept = 16 * mebibyte;
  const content = randomBytes(20 * mebibyte);
  const upload = { sha256: sha256Of(content), project: "default", owner: "one" };
  const breakOff = async (store: BlobStore, bytes: Uint8Array = content.subarray(0, kept)) =>
    assert.rejects(store.receive(upload, cutStream(bytes)), { message: "Connection lost" });

  for (const [where, offset] of [
    ["at what was kept", kept],
    ["at a byte before that", kept - 5],
    ["at its beginning", 0],
  ] as const) {
    for (const isRestarted of [false, true]) {
      const by = isRestarted ? "another process" : "the same process";
      test(`${name}: an upload that broke off goes on ${where}, in ${by}`, { skip }, async (t) => {
        const { store, reopen, folder } = await open(t);
        await breakOff(store);
        const next = isRestarted ? await reopen() : store;
        assert.deepEqual(await next.findPartial(upload), { bytes: kept });
        assert.equal(await next.keptBytes(upload.project), kept);
        const blob = await next.receive(upload, stream(content.subarray(offset)), { offset });
        assert.deepEqual(blob, { sha256: upload.sha256, bytes: content.length });
        assert.equal(sha256Of(await buffer(next.read(upload.sha256))), upload.sha256);
        assert.equal(await next.keptBytes(upload.project), 0);
        assert.deepEqual(await filesIn(folder), [upload.sha256]);
      });
    }
  }

  test(
    `${name}: an upload cannot go on behind what is kept, nor for another owner`,
    { skip },
    async (t) => {
      const { store } = await open(t);
      await breakOff(store);
      const goingOn = store.receive(upload, stream(content.subarray(kept + 1)), {
        offset: kept + 1,
      });
      await assert.rejects(goingOn, {
        code: "upload_offset_mismatch",
        headers: { "upload-offset": String(kept) },
      });
      const another = { ...upload, owner: "two" };
      assert.equal(await store.findPartial(another), undefined);
    },
  );

  test(
    `${name}: an upload whose parts are not of one model leaves nothing`,
    { skip },
    async (t) => {
      const { store, folder } = await open(t);
      await breakOff(store, randomBytes(kept));
      const goingOn = store.receive(upload, stream(content.subarray(kept)), { offset: kept });
      await assert.rejects(goingOn, { code: "model_checksum_mismatch" });
      assert.deepEqual(await filesIn(folder), []);
    },
  );

  test(
    `${name}: purge() removes what nobody has continued for a day, and nothing else`,
    { skip },
    async (t) => {
      const { store, reopen, folder } = await open(t);
      const stored = await store.write(Readable.from([Buffer.from("model")]));
      await breakOff(store);
      await store.purge();
      assert.deepEqual(await store.findPartial(upload), { bytes: kept });
      const longAgo = new Date(Date.now() - 25 * (day / 24));
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (entry.isFile()) await utimes(path.join(entry.parentPath, entry.name), longAgo, longAgo);
      }
      await (await reopen()).purge();
      assert.equal(await store.findPartial(upload), undefined);
      assert.deepEqual(await filesIn(folder), [stored.sha256]);
    },
  );
}
