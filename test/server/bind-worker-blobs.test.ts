import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { makeTestApp, problemIn, startJob, beginTestWorker } from "./test-app.ts";

const bytes = Buffer.from("the weights of a model");
const sha256 = createHash("sha256").update(bytes).digest("hex");

test("a worker stores a file through the service, and reads it whole and in part", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const { secret } = await beginTestWorker(app, id);
  const headers = { authorization: `Bearer ${secret}` };
  const path = `/worker/v1/jobs/${id}/blobs/${sha256}`;
  assert.equal((await app.app.request(path, { method: "HEAD", headers })).status, 404);
  for (const status of [201, 200]) {
    const stored = await app.app.request(path, { method: "PUT", headers, body: bytes });
    assert.equal(stored.status, status);
    assert.deepEqual(await stored.json(), { sha256, bytes: bytes.length });
  }
  const head = await app.app.request(path, { method: "HEAD", headers });
  assert.equal(head.headers.get("content-length"), String(bytes.length));
  assert.deepEqual(
    Buffer.from(await (await app.app.request(path, { headers })).arrayBuffer()),
    bytes,
  );
  const rest = await app.app.request(path, { headers: { ...headers, range: "bytes=4-" } });
  assert.equal(rest.status, 206);
  assert.equal(rest.headers.get("content-range"), `bytes 4-${bytes.length - 1}/${bytes.length}`);
  assert.equal(await rest.text(), "weights of a model");
});

test("a worker's file must be what its name says, and no larger than a model may be", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const { secret } = await beginTestWorker(app, id);
  const put = (name: string, body: Buffer<ArrayBuffer>) =>
    app.app.request(`/worker/v1/jobs/${id}/blobs/${name}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${secret}` },
      body,
    });
  assert.equal(
    (await problemIn(await put(sha256, Buffer.from("other")))).code,
    "model_checksum_mismatch",
  );
  assert.equal((await problemIn(await put(sha256, Buffer.alloc(1001)))).code, "payload_too_large");
  assert.equal((await put("name", bytes)).status, 404);
  assert.equal(await app.blobs.find(sha256), undefined);
});

test("files are for workers of the job alone", async (t) => {
  const app = await makeTestApp(t);
  const [mine, other] = [await startJob(app), await startJob(app)];
  const { secret } = await beginTestWorker(app, mine.id);
  for (const token of [secret, await app.tokenFor("admin")]) {
    assert.equal(
      (await app.ask(`GET /worker/v1/jobs/${other.id}/blobs/${sha256}`, { token })).status,
      401,
    );
  }
});
