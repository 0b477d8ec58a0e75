import assert from "node:assert/strict";
import { join } from "node:path";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import test, { type TestContext } from "node:test";
import { artifactLink, linkedFile } from "../../src/contract/routes/artifact-routes.ts";
import { tenantToken } from "./tenant-tokens.ts";
import { setRole, signInIssued } from "./test-people.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob } from "./test-app.ts";

const content = "0123456789";

async function linkedArtifact(t: TestContext, database?: string) {
  const app = await makeTestApp(t, database === undefined ? {} : { database });
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  const blob = await worker.store(content);
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "artifact", artifact: { name: "model.onnx", kind: "model", ...blob } },
    { type: "artifact", artifact: { name: "other.onnx", kind: "weights", ...blob } },
  );
  const makeLink = async (body: object = {}, token?: string) => {
    const call = `POST /v1/jobs/${id}/artifacts/model.onnx/link`;
    const answer = await app.ask(call, token === undefined ? { body } : { body, token });
    assert.equal(answer.status, 201);
    return artifactLink.parse(await answer.json());
  };
  const follow = (url: string, headers = {}) => app.ask(`GET ${url}`, { token: null, headers });
  return { app, id, worker, makeLink, follow };
}

test("a link downloads its file without an access token, whole or in parts", async (t) => {
  const { makeLink, follow } = await linkedArtifact(t);
  const { url, expiresAt } = await makeLink();
  assert.equal(expiresAt, "2026-01-01T01:00:00.000Z");
  const whole = await follow(url);
  assert.equal(await whole.text(), content);
  assert.equal(whole.headers.get("content-disposition"), 'attachment; filename="model.onnx"');
  const part = await follow(url, { range: "bytes=2-4" });
  assert.deepEqual([part.status, await part.text()], [206, "234"]);
});

test("a link says what its file is where whoever made it chose so, and cannot be made to", async (t) => {
  const { makeLink, follow } = await linkedArtifact(t);
  const describe = async (url: URL) => {
    url.pathname += "/summary";
    return follow(url.href);
  };
  const plain = new URL((await makeLink()).url);
  const file = linkedFile.parse(await (await describe(new URL(plain))).json());
  assert.deepEqual([file.name, file.bytes, file.result], ["model.onnx", content.length, null]);
  assert.deepEqual(file.weightFiles, { files: 1, bytes: content.length, archive: null });
  plain.searchParams.set("summary", "true");
  assert.equal((await problemIn(await follow(plain.href))).code, "not_found");
  assert.equal((await problemIn(await describe(plain))).code, "not_found");
  const telling = new URL((await makeLink({ withSummary: true })).url);
  assert.equal(await (await follow(telling.href)).text(), content);
  const { result } = linkedFile.parse(await (await describe(telling)).json());
  assert.deepEqual(
    [result?.model, result?.target, result?.status],
    ["detector.onnx", "cpu", "Sharding"],
  );
  assert.ok(!/createdBy|labels|batchId|"id"/.test(JSON.stringify(result)));
});

test("a link is no longer valid when its time is over", async (t) => {
  const { app, makeLink, follow } = await linkedArtifact(t);
  const { url } = await makeLink({ expiresInSeconds: 60 });
  app.advance(59_999);
  assert.equal((await follow(url)).status, 200);
  app.advance(1);
  const problem = await problemIn(await follow(url));
  assert.equal(problem.code, "link_expired");
  assert.equal(problem.detail, "The link was valid until 2026-01-01T00:01:00.000Z");
});

test("a link ends with the token that made it, at its end or when it is revoked", async (t) => {
  const { app, makeLink, follow } = await linkedArtifact(t);
  const expiresAt = "2026-01-01T00:10:00.000Z";
  const { token } = await tenantToken(app, { scopes: ["jobs:read"], expiresAt });
  const { url, expiresAt: end } = await makeLink({ expiresInSeconds: 604_800 }, token);
  assert.equal(end, expiresAt);
  assert.equal((await follow(url)).status, 200);
  assert.equal((await app.ask("DELETE /v1/tokens/self", { token })).status, 204);
  const problem = await problemIn(await follow(url));
  assert.deepEqual([problem.status, problem.code], [410, "link_expired"]);
});

test("a link ends when the person who made it is no longer a member", async (t) => {
  const { app, id, follow } = await linkedArtifact(t);
  const person = await signInIssued(app);
  await setRole(app, person.id, "viewer");
  const call = `POST /v1/jobs/${id}/artifacts/model.onnx/link`;
  const made = await app.ask(call, { ...person, body: {} });
  const { url } = artifactLink.parse(await made.json());
  assert.equal((await follow(url)).status, 200);
  await app.ask(`DELETE /v1/projects/default/members/${person.id}`);
  assert.equal((await problemIn(await follow(url))).code, "link_expired");
});

test("all links to a job's files can be ended, and new ones made", async (t) => {
  const { app, id, makeLink, follow } = await linkedArtifact(t);
  const links = [await makeLink(), await makeLink()];
  const reader = await app.tokenFor("jobs:read");
  const call = `DELETE /v1/jobs/${id}/links`;
  assert.equal((await app.ask(call, { token: reader })).status, 403);
  assert.equal((await app.ask(call)).status, 204);
  for (const { url } of links) {
    assert.equal((await problemIn(await follow(url))).code, "not_found");
  }
  assert.equal((await follow((await makeLink()).url)).status, 200);
});

const changes: Readonly<Record<string, (url: URL) => void>> = {
  "a later end": (url) => url.searchParams.set("expires", "4000000000"),
  "another hash": (url) => url.searchParams.set("sha256", "0".repeat(64)),
  "another signature": (url) => url.searchParams.set("signature", "A".repeat(43)),
  "another file": (url) => (url.pathname = url.pathname.replace("model.onnx", "other.onnx")),
  "another job": (url) => {
    url.pathname = url.pathname.replace(/job-[^/]*/, `job-${"0".repeat(26)}`);
  },
};

for (const [name, change] of Object.entries(changes)) {
  test(`a link with ${name} leads nowhere`, async (t) => {
    const { makeLink, follow } = await linkedArtifact(t);
    const url = new URL((await makeLink()).url);
    change(url);
    assert.equal((await problemIn(await follow(url.href))).code, "not_found");
  });
}

test("a link leads nowhere once its job is deleted", async (t) => {
  const { app, id, worker, makeLink, follow } = await linkedArtifact(t);
  const { url } = await makeLink();
  await worker.report({ type: "result", outcome: "Failed" });
  assert.equal((await app.ask(`DELETE /v1/jobs/${id}`)).status, 204);
  assert.equal((await problemIn(await follow(url))).code, "not_found");
});

test("a link is valid after a restart of the service", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "links-"));
  t.after(() => rm(folder, { recursive: true }));
  const database = join(folder, "service.sqlite");
  const first = await linkedArtifact(t, database);
  const { url } = await first.makeLink();
  await first.app.stop();
  const second = await makeTestApp(t, { database });
  // Its blobs are elsewhere: the link is recognised, and the file is not there.
  const answer = await second.ask(`GET ${url}`, { token: null });
  assert.equal((await problemIn(answer)).code, "artifact_missing");
});

test("a link of more than a week and of no file are refused", async (t) => {
  const { app, id } = await linkedArtifact(t);
  const call = `POST /v1/jobs/${id}/artifacts/model.onnx/link`;
  const problem = await problemIn(await app.ask(call, { body: { expiresInSeconds: 604_801 } }));
  assert.equal(problem.errors?.[0]?.pointer, "/expiresInSeconds");
  const missing = await app.ask(call.replace("model.onnx", "none.onnx"), { body: {} });
  assert.equal((await problemIn(missing)).code, "not_found");
});
