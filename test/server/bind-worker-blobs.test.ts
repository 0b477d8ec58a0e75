import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import test from "node:test";
import { purgeReleasedBlobs } from "../../src/service/storage-folder/purge-regularly.ts";
import {
  beginTestWorker,
  followAddress,
  makeTestApp,
  problemIn,
  startJob,
  type TestApp,
} from "./test-app.ts";

const bytes = Buffer.from("the weights of a model");
const sha256 = createHash("sha256").update(bytes).digest("hex");

test("a worker stores a file through the service, and reads it whole and in part", async (t) => {
  const app = await makeTestApp(t, { keepsFolder: true });
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

test("a file that arrives when its job was deleted is not kept", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const { secret } = await beginTestWorker(app, id);
  async function* send() {
    yield bytes.subarray(0, 5);
    await app.ask(`POST /v1/jobs/cancel/${id}`);
    await app.records.attempts.end(id, 1, { error: null, lines: [] });
    assert.equal((await app.ask(`DELETE /v1/jobs/${id}`)).status, 204);
    yield bytes.subarray(5);
  }
  const answer = await app.app.request(`/worker/v1/jobs/${id}/blobs/${sha256}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${secret}` },
    body: ReadableStream.from(send()),
    duplex: "half",
  });
  assert.equal((await problemIn(answer)).code, "not_found");
  // Times of files are the disk's own.
  await purgeReleasedBlobs(app.records, app.blobs, new Date(Date.now() + 2 * 3_600_000));
  assert.equal(await app.blobs.find(sha256), undefined);
});

test("files are only for workers of the job", async (t) => {
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

test("a worker reads the blobs of its assignment and its own, and no other", async (t) => {
  const app = await makeTestApp(t);
  const [model, data] = [await uploadBlob(app, "model"), await uploadBlob(app, "data")];
  const { sha256: foreign } = await app.blobs.write(Readable.from([bytes]));
  const { id } = await startJob(app, {
    model: { source: `upload:sha256:${model}` },
    recipe: { evaluation: { level: "outputs", data: `upload:sha256:${data}` } },
  });
  const { secret } = await beginTestWorker(app, id);
  const ask = async (method: string, hash: string, body: Buffer<ArrayBuffer> | null = null) =>
    followAddress(
      await app.app.request(`/worker/v1/jobs/${id}/blobs/${hash}`, {
        method,
        headers: { authorization: `Bearer ${secret}` },
        body,
      }),
    );
  assert.equal(await (await ask("GET", model)).text(), "model");
  assert.equal(await (await ask("GET", data)).text(), "data");
  for (const method of ["GET", "HEAD"]) assert.equal((await ask(method, foreign)).status, 404);
  const claim = await problemIn(await ask("PUT", foreign, Buffer.from("")));
  assert.equal(claim.code, "model_checksum_mismatch");
  assert.equal((await ask("GET", foreign)).status, 404);
  assert.equal((await ask("PUT", foreign, bytes)).status, 201);
  assert.equal((await ask("GET", foreign)).status, 200);
});

test("a worker whose job or attempt has ended neither reads nor stores files", async (t) => {
  const app = await makeTestApp(t);
  for (const end of ["job", "attempt"]) {
    const { id } = await startJob(app);
    const worker = await beginTestWorker(app, id);
    const { sha256: own } = await worker.store("a file");
    const error = { code: "model_invalid", message: "It is not a model" } as const;
    if (end === "job") await worker.report({ type: "result", outcome: "Failed", error });
    else await app.records.attempts.end(id, 1, { error: null, lines: [] });
    for (const method of ["GET", "PUT"]) {
      const answer = await app.app.request(`/worker/v1/jobs/${id}/blobs/${own}`, {
        method,
        headers: { authorization: `Bearer ${worker.secret}` },
      });
      assert.equal(answer.status, 401, `${method} after the ${end}'s end`);
    }
  }
});

test("an artifact that no worker of the job has stored is refused", async (t) => {
  const app = await makeTestApp(t);
  await app.blobs.write(Readable.from([bytes]));
  const { id } = await startJob(app);
  const { secret } = await beginTestWorker(app, id);
  for (const hash of [sha256, "a".repeat(64)]) {
    const artifact = { name: "model.onnx", kind: "model", bytes: bytes.length, sha256: hash };
    const event = { type: "artifact", artifact, seq: 1, at: "2026-01-01T00:00:00.000Z" };
    const call = `POST /worker/v1/jobs/${id}/events`;
    const answer = await app.ask(call, { token: secret, body: { events: [event] } });
    assert.equal((await problemIn(answer)).code, "validation_failed");
  }
  assert.deepEqual((await app.records.jobs.find("default", id))?.artifacts, []);
});

/** Uploads a file as a caller of the REST interface. @returns its SHA-256 */
async function uploadBlob({ ask }: TestApp, content: string): Promise<string> {
  const hash = createHash("sha256").update(content).digest("hex");
  const headers = { "content-type": "application/octet-stream" };
  assert.equal((await ask(`PUT /v1/models/${hash}`, { body: content, headers })).status, 201);
  return hash;
}
