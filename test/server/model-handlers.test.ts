import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { makeTestApp, problemIn, type TestApp } from "./test-app.ts";

const dayMs = 86_400_000;
const bytes = Buffer.from("a model");
const sha256 = createHash("sha256").update(bytes).digest("hex");

async function upload(
  { app, tokenFor }: TestApp,
  content: Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Record<string, string> = {},
) {
  return app.request(`/v1/models/${sha256}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${await tokenFor("models:write")}`, ...headers },
    body: content,
    duplex: "half",
  });
}

test("a model is uploaded, found, and not taken twice", async (t) => {
  const app = await makeTestApp(t);
  assert.equal((await app.ask(`HEAD /v1/models/${sha256}`)).status, 404);
  const first = await upload(app, bytes);
  assert.equal(first.status, 201);
  assert.deepEqual(await first.json(), { source: `upload:sha256:${sha256}`, sha256, bytes: 7 });
  const found = await app.ask(`HEAD /v1/models/${sha256}`);
  assert.equal(found.status, 200);
  assert.equal(found.headers.get("content-length"), "7");
  assert.equal((await upload(app, bytes)).status, 200);
  assert.deepEqual(await app.blobs.find(sha256), { bytes: 7 });
});

test("a model that is sent again is kept from then on", async (t) => {
  const app = await makeTestApp(t);
  for (const status of [201, 200]) {
    assert.equal((await upload(app, bytes)).status, status);
    app.advance(20 * dayMs);
  }
  await app.records.deleteExpired({ models: 30 * dayMs });
  assert.equal((await app.ask(`HEAD /v1/models/${sha256}`)).status, 200);
});

test("a model that is not what its address says is refused and leaves nothing", async (t) => {
  const app = await makeTestApp(t);
  assert.equal(
    (await problemIn(await upload(app, Buffer.from("another model")))).code,
    "model_checksum_mismatch",
  );
  assert.equal(await app.blobs.find(sha256), undefined);
});

test("a model that says that it is too large is refused", async (t) => {
  const app = await makeTestApp(t);
  const answer = await upload(app, bytes, { "content-length": "1001" });
  const problem = await problemIn(answer);
  assert.equal(problem.code, "payload_too_large");
  assert.equal(problem.detail, "The body has 1001 bytes; at most 1000 are allowed");
});

test("a model that turns out to be too large is refused", async (t) => {
  const app = await makeTestApp(t);
  const stream = new Blob([new Uint8Array(1001)]).stream();
  assert.equal((await problemIn(await upload(app, stream))).code, "payload_too_large");
});

for (const type of [
  "application/x-www-form-urlencoded",
  "application/octet-stream",
  "text/plain",
]) {
  test(`a model may be sent as ${type}, as tools do by default`, async (t) => {
    const app = await makeTestApp(t);
    assert.equal((await upload(app, bytes, { "content-type": type })).status, 201);
  });
}

test("an address that is no SHA-256 is refused", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask(`PUT /v1/models/${sha256.toUpperCase()}`);
  assert.deepEqual(
    (await problemIn(answer)).errors?.map(({ pointer }) => pointer),
    ["path/sha256"],
  );
});
