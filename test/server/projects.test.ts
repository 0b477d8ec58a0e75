import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import test from "node:test";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import type { Workflow } from "../../src/contract/people/principal.ts";
import { createdToken } from "../../src/contract/people/token.ts";
import { completed, endJob } from "../github-app/reported-batch.ts";
import { proposal, pushed, tenantToken } from "./tenant-tokens.ts";
import { makeTestApp, problemIn, type TestApp, untilReceived } from "./test-app.ts";

const content = Buffer.from("a model");
const sha256 = createHash("sha256").update(content).digest("hex");
const otherRepository: Workflow = { ...pushed, repositoryId: "124", repository: "acme/other" };

async function put({ app }: TestApp, token: string, body: string, headers = {}) {
  return app.request(`/v1/models/${sha256}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, ...headers },
    body: Buffer.from(body),
  });
}

test("an administrator creates a project once, and a token of it that sees nothing of others", async (t) => {
  const { ask } = await makeTestApp(t);
  assert.equal((await ask("PUT /v1/projects/vision")).status, 201);
  assert.equal((await ask("PUT /v1/projects/vision")).status, 200);
  const { projects } = JSON.parse(await (await ask("GET /v1/projects")).text());
  assert.deepEqual(
    projects.map(({ name }: { name: string }) => name),
    ["default", "vision"],
  );
  const body = { name: "vision", scopes: ["admin"], project: "vision" };
  const created = createdToken.parse(await (await ask("POST /v1/tokens", { body })).json());
  const { token, project } = created;
  assert.equal(project, "vision");
  const { tokens } = JSON.parse(await (await ask("GET /v1/tokens", { token })).text());
  assert.deepEqual(
    tokens.map(({ id }: { id: string }) => id),
    [created.id],
  );
  const { entries } = JSON.parse(await (await ask("GET /v1/audit", { token })).text());
  assert.deepEqual(
    entries.map(({ action, subject }: Record<string, string>) => [action, subject]),
    [["createToken", created.id]],
  );
  const beyond = { name: "mine", scopes: ["admin"], project: "default" };
  assert.equal((await ask("POST /v1/tokens", { token, body: beyond })).status, 403);
  assert.equal((await ask("PUT /v1/projects/mine", { token })).status, 403);
});

test("a token of a project that does not exist, or has no name, is not made", async (t) => {
  const { ask } = await makeTestApp(t);
  const body = { name: "ci", scopes: ["jobs:read"], project: "none" };
  assert.equal((await problemIn(await ask("POST /v1/tokens", { body }))).code, "not_found");
  assert.equal((await ask("PUT /v1/projects/Vision")).status, 422);
});

test("a model that another project has must be sent whole, and is then had by both", async (t) => {
  const app = await makeTestApp(t);
  const first = await tenantToken(app, { project: "first" });
  const second = await tenantToken(app, { project: "second" });
  assert.equal((await put(app, first.token, "a model")).status, 201);
  const find = async (token: string) => app.ask(`HEAD /v1/models/${sha256}`, { token });
  assert.equal((await find(second.token)).status, 404);
  for (const wrong of ["", "a mode", "another model"]) {
    const problem = await problemIn(await put(app, second.token, wrong));
    assert.equal(problem.code, "model_checksum_mismatch");
  }
  assert.equal((await find(second.token)).status, 404);
  assert.equal((await put(app, second.token, "a model")).status, 201);
  assert.deepEqual(
    [(await find(first.token)).status, (await find(second.token)).status],
    [200, 200],
  );
});

test("nobody ends an upload that another repository began", async (t) => {
  const app = await makeTestApp(t, { keepsFolder: true });
  const { token: first } = await tenantToken(app, { workflow: pushed });
  const { token: second } = await tenantToken(app, { workflow: otherRepository });
  const sender = new PassThrough();
  const answer = app.app.request(`/v1/models/${sha256}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${first}` },
    body: Readable.toWeb(sender),
    duplex: "half",
  });
  sender.write(content.subarray(0, 6));
  await untilReceived(app, 6);
  sender.destroy(new Error("Connection lost"));
  await answer;
  const kept = await app.ask(`HEAD /v1/models/${sha256}`, { token: first });
  assert.equal(kept.headers.get("upload-offset"), "6");
  const asked = await app.ask(`HEAD /v1/models/${sha256}`, { token: second });
  assert.deepEqual([asked.status, asked.headers.get("upload-offset")], [404, null]);
  const range = { "content-range": "bytes 6-6/7" };
  const problem = await problemIn(await put(app, second, "l", range));
  assert.equal(problem.code, "upload_offset_mismatch");
});

/** A batch of a workflow that has its results compared within a suite. */
function compared({ commit, ref }: Workflow, recordBaseline: boolean) {
  const branch = ref.replace("refs/heads/", "");
  const base = { branch: "main" };
  return {
    models: [{ source: "https://models.example/one.onnx", name: "one" }],
    targets: ["cpu"],
    suite: "nightly",
    revision: { sha: commit, branch, base, recordBaseline },
  };
}

async function submit(app: TestApp, workflow: Workflow, recordBaseline: boolean) {
  const { token } = await tenantToken(app, { workflow });
  return app.ask("POST /v1/batches", { token, body: compared(workflow, recordBaseline) });
}

async function readBaseline(app: TestApp, answer: Response) {
  const { jobs } = batchSchema.parse(await answer.json());
  return (await app.records.jobs.find("default", jobs[0]?.id ?? ""))?.baseline?.jobId;
}

test("a suite belongs to the repository that recorded it first, for all its commits", async (t) => {
  const app = await makeTestApp(t);
  const { jobs } = batchSchema.parse(await (await submit(app, pushed, true)).json());
  await endJob(app, jobs[0]?.id ?? "", completed);
  const foreign = await problemIn(await submit(app, otherRepository, true));
  assert.deepEqual(
    foreign.errors?.map(({ pointer }) => pointer),
    ["/suite"],
  );
  assert.equal(await readBaseline(app, await submit(app, otherRepository, false)), undefined);
  assert.equal(await readBaseline(app, await submit(app, proposal, false)), jobs[0]?.id);
});

test("of two repositories that record a new suite at once the second records nothing", async (t) => {
  const app = await makeTestApp(t);
  const batches = [await submit(app, pushed, true), await submit(app, otherRepository, true)];
  for (const answer of batches) {
    const { jobs } = batchSchema.parse(await answer.json());
    await endJob(app, jobs[0]?.id ?? "", completed);
  }
  const owner = await app.records.baselines.findOwner("default", "nightly");
  assert.deepEqual(owner, { project: "default", origin: { repository: pushed.repositoryId } });
  assert.equal(await readBaseline(app, await submit(app, otherRepository, false)), undefined);
});

test("a workflow records baselines only of its own branch and commit", async (t) => {
  const app = await makeTestApp(t);
  const { token } = await tenantToken(app, { workflow: { ...pushed, ref: "refs/heads/mine" } });
  const body = compared(pushed, true);
  const problem = await problemIn(await app.ask("POST /v1/batches", { token, body }));
  assert.deepEqual(
    problem.errors?.map(({ pointer }) => pointer),
    ["/revision"],
  );
});
