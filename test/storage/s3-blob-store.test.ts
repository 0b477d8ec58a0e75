import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import type { S3Access } from "../../src/storage/s3/s3-client.ts";
import { openS3BlobStore } from "../../src/storage/s3/s3-blob-store.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { cutStream, filesIn, sha256Of, stream } from "./blob-content.ts";
import { cutAfter, denyAccess, slowDown, startFaultyS3Server, startS3Server } from "./s3-server.ts";

const skip = s3Missing;
const mebibyte = 1024 ** 2;
const day = 24 * 60 * 60 * 1000;

async function openStore(t: TestContext, access: S3Access) {
  const store = await openS3BlobStore(access);
  t.after(() => store[Symbol.asyncDispose]());
  return store;
}

async function makeStore(t: TestContext) {
  const { access, folder } = await startS3Server(t);
  return { store: await openStore(t, access), access, folder };
}

const kept = 16 * mebibyte;
const content = randomBytes(20 * mebibyte);
const upload = { sha256: sha256Of(content), project: "default", owner: "one" };

test("whole parts of an upload that broke off are kept", { skip }, async (t) => {
  const { store, access, folder } = await makeStore(t);
  const broken = store.receive(upload, cutStream(content.subarray(0, 18 * mebibyte)));
  await assert.rejects(broken, { message: "Connection lost" });
  const next = await openStore(t, access);
  assert.deepEqual(await next.findPartial(upload), { bytes: kept });
  await next.receive(upload, stream(content.subarray(kept)), { offset: kept });
  assert.equal(sha256Of(await buffer(next.read(upload.sha256))), upload.sha256);
  assert.deepEqual(await filesIn(folder), [upload.sha256]);
});

test("parts that another process replaces meanwhile never make a blob", { skip }, async (t) => {
  const { store, access } = await makeStore(t);
  await assert.rejects(store.receive(upload, cutStream(content.subarray(0, kept))));
  const other = await openStore(t, access);
  await assert.rejects(other.receive(upload, cutStream(randomBytes(kept))));
  const goingOn = store.receive(upload, stream(content.subarray(kept)), { offset: kept });
  await assert.rejects(goingOn, /PreconditionFailed/);
  assert.equal(await store.find(upload.sha256), undefined);
});

test(
  "purge() removes what nobody has continued for a day, and nothing else",
  { skip },
  async (t) => {
    const { store, folder } = await makeStore(t);
    const stored = await store.write(stream(Buffer.from("model")));
    await assert.rejects(store.receive(upload, cutStream(content.subarray(0, kept))));
    const names = await readdir(path.join(folder, "incoming"));
    const uploadFolder = path.join(folder, "incoming", names[0] ?? "");
    const longAgo = new Date(Date.now() - 25 * (day / 24));
    await utimes(path.join(uploadFolder, "00000"), longAgo, longAgo);
    await store.purge();
    assert.deepEqual(await store.findPartial(upload), { bytes: kept });
    await utimes(path.join(uploadFolder, "00001"), longAgo, longAgo);
    await store.purge();
    assert.deepEqual(await filesIn(folder), [stored.sha256]);
  },
);

async function makeFaultyStore(t: TestContext) {
  const server = await startFaultyS3Server(t);
  const store = await openStore(t, server.access);
  const folder = await mkdtemp(path.join(tmpdir(), "s3-files-"));
  t.after(async () => rm(folder, { recursive: true }));
  return { ...server, store, target: path.join(folder, "model.onnx") };
}

test("materialize() goes on behind the last byte after broken connections", { skip }, async (t) => {
  const { store, faults, requests, target } = await makeFaultyStore(t);
  const { sha256 } = await store.write(stream(content));
  faults.push(cutAfter(7 * mebibyte), cutAfter(7 * mebibyte));
  requests.length = 0;
  await store.materialize(sha256, target);
  assert.equal(sha256Of(await readFile(target)), sha256);
  assert.equal(requests.length, 3);
  for (const request of requests.slice(1)) assert.match(request, /bytes=[1-9]\d{5,}-$/);
});

test("writeFile() stores a local file over failures of the server", { skip }, async (t) => {
  const { store, faults, target } = await makeFaultyStore(t);
  await writeFile(target, content);
  faults.push(slowDown, () => false, slowDown, slowDown);
  assert.deepEqual(await store.writeFile(target), { sha256: upload.sha256, bytes: content.length });
  assert.equal(sha256Of(await buffer(store.read(upload.sha256))), upload.sha256);
});

test("an upload is stored though the answer to its last request is lost", { skip }, async (t) => {
  const { store, faults, requests } = await makeFaultyStore(t);
  let lost = 0;
  const loseCompletion: (typeof faults)[number] = (request, response) => {
    const isCompletion = request.method === "POST" && request.url?.includes("uploadId=") === true;
    if (!isCompletion || lost++ > 0) return false;
    return cutAfter(0)(request, response);
  };
  faults.push(...Array.from({ length: 50 }, () => loseCompletion));
  await store.receive(upload, stream(content));
  assert.equal(lost, 2, requests.join("\n"));
  assert.equal(sha256Of(await buffer(store.read(upload.sha256))), upload.sha256);
});

test("a server that stays away is named, and what arrived is kept", { skip }, async (t) => {
  const { store, faults } = await makeFaultyStore(t);
  await assert.rejects(store.receive(upload, cutStream(content.subarray(0, kept))));
  const pass = () => false;
  faults.push(pass, pass, ...Array.from({ length: 20 }, () => slowDown));
  const goingOn = store.receive(upload, stream(content.subarray(kept)), { offset: kept });
  await assert.rejects(goingOn, { code: "unavailable", message: /does not answer: .*503 to/ });
  faults.length = 0;
  assert.deepEqual(await store.findPartial(upload), { bytes: kept });
});

test("a right that the key loses is named, and what arrived is kept", { skip }, async (t) => {
  const { store, faults } = await makeFaultyStore(t);
  await assert.rejects(store.receive(upload, cutStream(content.subarray(0, kept))));
  const denyWriting: typeof denyAccess = (request, response) =>
    request.method === "PUT" && denyAccess(request, response);
  faults.push(...Array.from({ length: 20 }, () => denyWriting));
  const goingOn = store.receive(upload, stream(content.subarray(kept)), { offset: kept });
  await assert.rejects(goingOn, { code: "unavailable", message: / 403 to PUT .*AccessDenied/ });
  faults.length = 0;
  assert.equal(await store.find(upload.sha256), undefined);
  assert.deepEqual(await store.findPartial(upload), { bytes: kept });
});

test("openS3BlobStore() names each right that the key lacks", { skip }, async (t) => {
  const { access, faults } = await startFaultyS3Server(t);
  for (const [i, right] of ["PUT", "HEAD", "GET", "POST"].entries()) {
    faults.push(...Array.from({ length: i }, () => () => false), denyAccess);
    const message = new RegExp(`^Bucket "models" cannot be used: .* 403 to ${right} `);
    await assert.rejects(openS3BlobStore(access), { message });
  }
});

test("a reader that goes away ends the transfer", { skip }, async (t) => {
  const { store, faults } = await makeFaultyStore(t);
  const { sha256 } = await store.write(stream(content));
  const closed = Promise.withResolvers<void>();
  faults.push((_, response) => {
    response.once("close", closed.resolve);
    return false;
  });
  const reader = store.read(sha256);
  for await (const _ of reader) break;
  await closed.promise;
});

const wrong: readonly (readonly [string, Partial<S3Access>, RegExp])[] = [
  ["a bucket that is not there", { bucket: "absent" }, /"absent" cannot be used: .*NoSuchBucket/],
  ["a wrong key", { secretAccessKey: "wrong" }, /cannot be used: .*SignatureDoesNotMatch/],
  [
    "an unknown key",
    { accessKeyId: "unknown" },
    /cannot be used: .*(InvalidAccessKeyId|XAdminUserNotFound)/,
  ],
];
for (const [name, change, message] of wrong) {
  test(`openS3BlobStore() names ${name}, and no secret`, { skip }, async (t) => {
    const { access } = await startS3Server(t);
    const opening = openS3BlobStore({ ...access, ...change });
    await assert.rejects(opening, (error: Error) => {
      assert.match(error.message, message);
      assert.ok(!error.message.includes(access.secretAccessKey));
      return true;
    });
  });
}
