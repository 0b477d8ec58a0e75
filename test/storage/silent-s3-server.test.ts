import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import type { BlobStore } from "../../src/storage/blob-store.ts";
import { putObject } from "../../src/storage/s3/objects.ts";
import { openS3BlobStore } from "../../src/storage/s3/s3-blob-store.ts";
import { createS3Client } from "../../src/storage/s3/s3-client.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { startFaultyS3Server, stayQuiet } from "./s3-server.ts";

const skip = s3Missing;
const mebibyte = 1024 ** 2;
const limits = { silenceMs: 500, joinMs: 500 };
const content = randomBytes(20 * mebibyte);
const sha256 = createHash("sha256").update(content).digest("hex");
const upload = { sha256, project: "default", owner: "one" };

async function* stream(start = 0) {
  for (let at = start; at < content.length; at += 65_536) yield content.subarray(at, at + 65_536);
}

/** A store whose server is silent behind so many answers. */
async function makeQuietStore(t: TestContext, answered: number, silence = limits) {
  const { access, faults, requests } = await startFaultyS3Server(t);
  const store = await openS3BlobStore(access, silence);
  t.after(() => store[Symbol.asyncDispose]());
  requests.length = 0;
  const pass = () => false;
  faults.push(...Array.from({ length: answered }, () => pass));
  faults.push(...Array.from({ length: 100 }, () => stayQuiet));
  return { store, faults, requests };
}

const uses: readonly (readonly [string, number, (store: BlobStore) => Promise<unknown>])[] = [
  ["finds", 0, (store) => store.find(sha256)],
  ["reads", 0, (store) => buffer(store.read(sha256))],
  ["writes", 0, (store) => store.write(stream())],
  ["writes", 2, (store) => store.write(stream())],
  ["writes", 4, (store) => store.write(stream())],
  ["uploads", 2, (store) => store.receive(upload, stream())],
];
for (const [name, answered, use] of uses) {
  test(
    `who ${name} learns that a server is silent after ${answered} answers`,
    { skip },
    async (t) => {
      const { store, requests } = await makeQuietStore(t, answered);
      await assert.rejects(use(store), {
        code: "unavailable",
        message: /S3 server does not answer/,
      });
      // Each question twice, of which some are asked at once; none to clean up.
      assert.ok(requests.length <= answered + 6, requests.join("\n"));
    },
  );
}

test("an upload goes on once a silent server answers again", { skip }, async (t) => {
  // A busy server is not silent.
  const patient = { silenceMs: 2_000, joinMs: 2_000 };
  const { store, faults } = await makeQuietStore(t, 3, patient);
  await assert.rejects(store.receive(upload, stream()), { code: "unavailable" });
  faults.length = 0;
  const { bytes: offset = 0 } = (await store.findPartial(upload)) ?? {};
  assert.notEqual(offset, 0);
  await store.receive(upload, stream(offset), { offset });
  assert.deepEqual(await store.find(sha256), { bytes: content.length });
});

test("a server that takes a body slowly is waited for", async (t) => {
  const takeSlowly = async (request: IncomingMessage) => {
    let taken = 0;
    for await (const piece of request) {
      taken += Buffer.byteLength(piece);
      if (taken % (2 * mebibyte) < piece.length) await delay(100);
    }
  };
  const server = createServer((request, response) => {
    const answer = () => response.setHeader("etag", '"all"').end();
    takeSlowly(request).then(answer, () => response.destroy());
  });
  const endpoint = await listenLocally(t, server);
  const key = { accessKeyId: "key", secretAccessKey: "secret" };
  const access = { endpoint, region: "us-east-1", bucket: "models", isPathStyle: true, ...key };
  await using client = createS3Client(access, { silenceMs: 2000, joinMs: 2000 });
  const stored = await putObject(client, "large", { content: Buffer.alloc(100 * mebibyte) });
  assert.equal(stored.etag, '"all"');
});
