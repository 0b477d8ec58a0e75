import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
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
