import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import test from "node:test";
import { tenantToken } from "./tenant-tokens.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob, type TestApp } from "./test-app.ts";
import { until } from "../support/until.ts";

function hash(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Uploads a text; its length is announced, or not. */
async function upload({ app, admin }: TestApp, content: string, token = admin) {
  return app.request(`/v1/models/${hash(content)}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, "content-length": String(content.length) },
    body: content,
  });
}

/** Begins an upload whose length nobody knows before. */
function stream({ app, admin }: TestApp, content: string) {
  const sender = new PassThrough();
  const answer = app.request(`/v1/models/${hash(content)}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${admin}` },
    body: Readable.toWeb(sender),
    duplex: "half",
  });
  return { sender, answer };
}

test("an upload beyond the project's bytes is refused before it is read, and counts for no other", async (t) => {
  const app = await makeTestApp(t, { maxStoredBytes: 100 });
  assert.equal((await upload(app, "a".repeat(60))).status, 201);
  assert.equal((await upload(app, "a".repeat(60))).status, 200);
  const refused = await upload(app, "b".repeat(41));
  assert.equal(refused.headers.get("ratelimit-policy"), '"stored-bytes";q=100');
  const problem = await problemIn(refused);
  assert.deepEqual([problem.status, problem.code], [429, "too_many_bytes"]);
  assert.match(problem.detail, /60 bytes of 100/);
  const { token } = await tenantToken(app, { project: "other" });
  assert.equal((await upload(app, "b".repeat(41), token)).status, 201);
  assert.equal((await upload(app, "c".repeat(40))).status, 201);
});

test("an upload of unknown length ends where the project's bytes do, and leaves nothing", async (t) => {
  const app = await makeTestApp(t, { maxStoredBytes: 100 });
  const content = "x".repeat(101);
  const { sender, answer } = stream(app, content);
  sender.end(content);
  assert.equal((await problemIn(await answer)).code, "too_many_bytes");
  assert.equal((await upload(app, "y".repeat(100))).status, 201);
});

test("two uploads at once do not both get the rest", async (t) => {
  const app = await makeTestApp(t, { maxStoredBytes: 100 });
  const contents = ["x".repeat(60), "y".repeat(60)];
  const uploads = contents.map((content) => ({ content, ...stream(app, content) }));
  for (const { sender, content } of uploads) sender.end(content);
  const statuses = await Promise.all(uploads.map(async ({ answer }) => (await answer).status));
  assert.ok(statuses.filter((status) => status === 201).length <= 1, statuses.join());
});

test("what is kept of an interrupted upload counts", async (t) => {
  const app = await makeTestApp(t, { maxStoredBytes: 100, keepsFolder: true });
  const { sender, answer } = stream(app, "never");
  sender.write("z".repeat(50));
  const incoming = `/v1/models/${hash("never")}`;
  const used = async () =>
    JSON.parse(await (await app.ask("GET /v1/usage")).text()).storedBytes.used;
  await until("the bytes have arrived", async () => (await used()) >= 50);
  sender.destroy(new Error("Connection lost"));
  await answer;
  assert.equal((await app.ask(`HEAD ${incoming}`)).headers.get("upload-offset"), "50");
  assert.equal((await upload(app, "b".repeat(51))).status, 429);
  assert.equal((await upload(app, "b".repeat(50))).status, 201);
});

test("an interrupted upload counts while it goes on", async (t) => {
  const app = await makeTestApp(t, { maxStoredBytes: 100, keepsFolder: true });
  const content = "z".repeat(70);
  const first = stream(app, content);
  first.sender.write(content.slice(0, 60));
  const used = async () =>
    JSON.parse(await (await app.ask("GET /v1/usage")).text()).storedBytes.used;
  await until("the bytes have arrived", async () => (await used()) >= 60);
  first.sender.destroy(new Error("Connection lost"));
  await first.answer;
  const sender = new PassThrough();
  const answer = app.app.request(`/v1/models/${hash(content)}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${app.admin}`, "content-range": "bytes 60-69/70" },
    body: Readable.toWeb(sender),
    duplex: "half",
  });
  sender.write("z");
  await until("the next byte has arrived", async () => (await used()) === 61);
  assert.equal((await upload(app, "b".repeat(41))).status, 429);
  sender.end(content.slice(61));
  assert.equal((await answer).status, 201);
  assert.equal(await used(), 70);
});

test("a worker's file beyond the project's bytes is refused", async (t) => {
  const app = await makeTestApp(t, { maxStoredBytes: 10 });
  const { id } = await startJob(app);
  const { secret } = await beginTestWorker(app, id);
  const content = "x".repeat(11);
  const answer = await app.app.request(`/worker/v1/jobs/${id}/blobs/${hash(content)}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${secret}` },
    body: content,
  });
  assert.equal((await problemIn(answer)).code, "too_many_bytes");
});
