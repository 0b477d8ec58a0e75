import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import test, { type TestContext } from "node:test";
import { limits } from "../../src/contract/limits.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { partialUploadName } from "../../src/storage/partial-upload-path.ts";
import { selectExcessUploads } from "../../src/storage/select-excess-uploads.ts";
import { until } from "../support/until.ts";

const content = Buffer.from("the first bytes, and the others");
const sha256 = createHash("sha256").update(content).digest("hex");
const mine = { sha256, project: "default", owner: "me" };
const theirs = { ...mine, owner: "somebody else" };

async function makeStore(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "uploads-"));
  t.after(() => rm(folder, { recursive: true }));
  const store = await createDirectoryBlobStore(folder);
  const kept = () => readdir(join(folder, "incoming"));
  return { store, kept };
}

async function* brokenOff(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
  throw new Error("Connection lost");
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

test("somebody who holds the same hash with a byte neither stops nor shortens an upload", async (t) => {
  const { store, kept } = await makeStore(t);
  await assert.rejects(store.receive(mine, brokenOff(content.subarray(0, 15))));
  const drip = new PassThrough();
  const held = store.receive(theirs, drip);
  drip.write("x");
  await until("the byte has arrived", async () => (await kept()).length === 2);
  assert.deepEqual(await store.findPartial(mine), { bytes: 15 });
  await store.receive(mine, whole(content.subarray(15)), { offset: 15 });
  assert.deepEqual(await store.find(sha256), { bytes: content.length });
  drip.destroy(new Error("Connection lost"));
  await assert.rejects(held);
});

test("of a project's broken-off uploads with made-up hashes a bounded number is kept", async (t) => {
  const { store, kept } = await makeStore(t);
  for (let i = 0; i < limits.partialUploads + 10; i++) {
    const upload = { ...mine, sha256: i.toString(16).padStart(64, "0") };
    await assert.rejects(store.receive(upload, brokenOff(Buffer.from("x"))));
  }
  assert.equal((await kept()).length, limits.partialUploads);
});

test("broken-off uploads of one token push out none of another's", async (t) => {
  const { store, kept } = await makeStore(t);
  await assert.rejects(store.receive(theirs, brokenOff(content.subarray(0, 15))));
  for (let i = 0; i < limits.partialUploads + 10; i++) {
    const upload = { ...mine, sha256: i.toString(16).padStart(64, "0") };
    await assert.rejects(store.receive(upload, brokenOff(Buffer.from("x"))));
  }
  assert.deepEqual(await store.findPartial(theirs), { bytes: 15 });
  assert.equal((await kept()).length, limits.partialUploads);
});

test("of broken-off uploads that are too large together, the token that keeps most loses its oldest", () => {
  const gigabytes = (owner: string, count: number, second: number) => ({
    name: partialUploadName({ ...mine, owner, sha256: second.toString(16).padStart(64, "0") }),
    bytes: count * 1024 ** 3,
    modifiedAt: new Date(second * 1000),
  });
  const first = gigabytes("a", 3, 1);
  const oldest = gigabytes("b", 20, 2);
  const others = [gigabytes("b", 25, 3), gigabytes("b", 18, 4)];
  assert.deepEqual(selectExcessUploads([...others, first, oldest]), [oldest]);
});

test("another project's broken-off uploads take no room from one", async (t) => {
  const { store } = await makeStore(t);
  await assert.rejects(store.receive(mine, brokenOff(content.subarray(0, 15))));
  for (let i = 0; i < limits.partialUploads + 1; i++) {
    const upload = { project: "other", owner: "me", sha256: i.toString(16).padStart(64, "0") };
    await assert.rejects(store.receive(upload, brokenOff(Buffer.from("x"))));
  }
  assert.deepEqual(await store.findPartial(mine), { bytes: 15 });
});

test("an upload that goes on at its end is not read again", async (t) => {
  const { store } = await makeStore(t);
  await assert.rejects(store.receive(mine, brokenOff(content.subarray(0, 10))));
  const read = t.mock.method(fs, "createReadStream");
  syncBuiltinESMExports();
  t.after(() => {
    read.mock.restore();
    syncBuiltinESMExports();
  });
  for (let offset = 10; offset < 20; offset++) {
    const byte = content.subarray(offset, offset + 1);
    await assert.rejects(store.receive(mine, brokenOff(byte), { offset }));
  }
  const { sha256: stored } = await store.receive(mine, whole(content.subarray(20)), { offset: 20 });
  assert.equal(stored, sha256);
  assert.equal(read.mock.callCount(), 0);
});

test("an upload that goes back to an earlier byte again and again has to start over", async (t) => {
  const { store, kept } = await makeStore(t);
  await assert.rejects(store.receive(mine, brokenOff(content.subarray(0, 10))));
  const again = () => store.receive(mine, brokenOff(content.subarray(5, 10)), { offset: 5 });
  for (let i = 0; i < 3; i++) await assert.rejects(again(), { message: "Connection lost" });
  await assert.rejects(again(), { code: "upload_offset_mismatch" });
  assert.deepEqual(await kept(), []);
});
