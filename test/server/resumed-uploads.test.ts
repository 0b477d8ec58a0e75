import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { makeTestApp, problemIn, type TestApp, untilReceived } from "./test-app.ts";

const content = Buffer.from("the first bytes, and the others");
const sha256 = createHash("sha256").update(content).digest("hex");
const kept = 15;

async function put(
  { app, admin }: TestApp,
  body: Uint8Array<ArrayBuffer> | ReadableStream,
  range?: string,
) {
  const headers = new Headers({ authorization: `Bearer ${admin}` });
  if (range !== undefined) headers.set("content-range", range);
  const path = `/v1/models/${sha256}`;
  return app.request(path, { method: "PUT", headers, body, duplex: "half" });
}

/** A service that was sent the first bytes of an upload before its sender was lost. */
async function withPartialUpload(t: TestContext, bytes: Buffer = content): Promise<TestApp> {
  const app = await makeTestApp(t, { keepsFolder: true });
  const { sender, answer } = await startUpload(app, bytes.subarray(0, kept));
  sender.destroy(new Error("Connection lost"));
  await answer;
  assert.equal(await fetchUploadOffset(app), String(kept));
  return app;
}

/** Resolves when the bytes have arrived. */
async function startUpload(app: TestApp, bytes: Uint8Array) {
  const sender = new PassThrough();
  const answer = put(app, Readable.toWeb(sender));
  sender.write(bytes);
  await untilReceived(app, bytes.length);
  return { sender, answer };
}

async function fetchUploadOffset(app: TestApp): Promise<string | null> {
  const answer = await app.ask(`HEAD /v1/models/${sha256}`);
  assert.equal(answer.status, 404);
  return answer.headers.get("upload-offset");
}

function filesKept(app: TestApp): Promise<string[]> {
  return readdir(join(app.directory, "storage", "incoming"));
}

for (const start of [kept, kept - 5]) {
  test(`an upload of which ${kept} bytes are kept goes on at byte ${start}`, async (t) => {
    const app = await withPartialUpload(t);
    const range = `bytes ${start}-${content.length - 1}/${content.length}`;
    assert.equal((await put(app, content.subarray(start), range)).status, 201);
    assert.deepEqual(await app.blobs.find(sha256), { bytes: content.length });
    assert.deepEqual(await filesKept(app), []);
  });
}

test("an upload that is sent again as a whole starts over", async (t) => {
  const app = await withPartialUpload(t, Buffer.alloc(kept, "x"));
  assert.equal((await put(app, content)).status, 201);
  assert.deepEqual(await filesKept(app), []);
});

test("an upload that goes on behind what is kept is answered with where it may", async (t) => {
  const app = await withPartialUpload(t);
  const answer = await put(
    app,
    content.subarray(20),
    `bytes 20-${content.length - 1}/${content.length}`,
  );
  const { code, detail } = await problemIn(answer);
  assert.equal(code, "upload_offset_mismatch");
  assert.equal(
    detail,
    "The upload cannot continue at byte 20: 15 bytes are kept, so it may continue at 15 or before",
  );
  assert.equal(answer.headers.get("upload-offset"), "15");
  assert.equal(await fetchUploadOffset(app), "15");
});

for (const [range, detail] of [
  ["bytes 15-20/31", /must go to the last byte: "bytes FIRST-30\/31"/],
  ["bytes 31-30/31", /must go to the last byte/],
  ["bytes 15-30/*", /must be bytes FIRST-LAST\/SIZE/],
] as const) {
  test(`a part "${range}" is refused, and what is kept stays`, async (t) => {
    const app = await withPartialUpload(t);
    const { code, errors = [] } = await problemIn(await put(app, content.subarray(kept), range));
    assert.equal(code, "validation_failed");
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
      ["header/content-range"],
    );
    assert.match(errors[0]?.message ?? "", detail);
    assert.equal(await fetchUploadOffset(app), String(kept));
  });
}

test("an upload whose parts are not of one model is refused and leaves nothing", async (t) => {
  const app = await withPartialUpload(t, Buffer.alloc(kept, "x"));
  const range = `bytes ${kept}-${content.length - 1}/${content.length}`;
  assert.equal(
    (await problemIn(await put(app, content.subarray(kept), range))).code,
    "model_checksum_mismatch",
  );
  assert.equal(await fetchUploadOffset(app), null);
  assert.deepEqual(await filesKept(app), []);
});

test("the size of the whole counts, not that of its last part", async (t) => {
  const app = await withPartialUpload(t);
  const said = await put(app, content.subarray(kept), "bytes 15-1000/1001");
  assert.equal(
    (await problemIn(said)).detail,
    "The model has 1001 bytes; at most 1000 are allowed",
  );
  const unsaid = await put(app, Buffer.alloc(990), "bytes 15-30/31");
  assert.equal((await problemIn(unsaid)).code, "payload_too_large");
});

test("two requests that send the same model do not meet", async (t) => {
  const app = await makeTestApp(t, { keepsFolder: true });
  const { sender, answer } = await startUpload(app, content.subarray(0, kept));
  const goingOn = await put(
    app,
    content.subarray(3),
    `bytes 3-${content.length - 1}/${content.length}`,
  );
  assert.match((await problemIn(goingOn)).detail, /at byte 3 while another request sends it/);
  assert.equal((await put(app, content)).status, 201);
  sender.end(content.subarray(kept));
  assert.equal((await answer).status, 201);
  assert.deepEqual(await filesKept(app), []);
  assert.equal(await text(app.blobs.read(sha256)), content.toString());
});

test("nobody goes on with what another project sent", async (t) => {
  const app = await withPartialUpload(t);
  assert.equal(
    await app.blobs.findPartial({ sha256, project: "another", owner: "one" }),
    undefined,
  );
});
