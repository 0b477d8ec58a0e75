import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { sql } from "kysely";
import { auditPage } from "../../src/contract/people/audit.ts";
import { batch } from "../../src/contract/batches/batch.ts";
import { createdToken, token as tokenSchema } from "../../src/contract/people/token.ts";
import { hashSecret } from "../../src/auth/access-token.ts";
import { openTestDatabase } from "../records/open-test-database.ts";
import { makeTestApp, problemIn, startJob, type TestApp } from "./test-app.ts";

const dayMs = 86_400_000;

async function createTestToken({ ask }: TestApp, fields: object = {}) {
  const body = { name: "ci", scopes: ["jobs:read", "jobs:write"], ...fields };
  return createdToken.parse(await (await ask("POST /v1/tokens", { body })).json());
}

async function readAudit({ ask }: TestApp, query = "") {
  return auditPage.parse(await (await ask(`GET /v1/audit${query}`)).json());
}

test("the audit records who made, cancelled and revoked what, newest first and in pages", async (t) => {
  const app = await makeTestApp(t);
  const made = await createTestToken(app);
  const { id } = await startJob(app);
  await app.ask(`POST /v1/jobs/cancel/${id}`, { token: made.token });
  const content = "a model";
  const sha256 = createHash("sha256").update(content).digest("hex");
  await app.ask(`PUT /v1/models/${sha256}`, {
    body: content,
    headers: { "content-type": "application/octet-stream" },
  });
  await app.ask(`DELETE /v1/tokens/${made.id}`);
  await app.ask("POST /v1/jobs/cancel/job-00000000000000000000000000");
  const { entries } = await readAudit(app);
  assert.deepEqual(
    entries.map(({ action, subject, tokenName }) => [action, subject, tokenName]),
    [
      ["revokeToken", made.id, "test"],
      ["uploadModel", sha256, "test"],
      ["cancelJob", id, "ci"],
      ["startCompression", id, "test"],
      ["createToken", made.id, "test"],
    ],
  );
  const first = await readAudit(app, "?limit=2");
  const second = await readAudit(app, `?limit=3&cursor=${first.nextCursor}`);
  assert.deepEqual([...first.entries, ...second.entries], entries);
  const token = await app.tokenFor("jobs:read");
  assert.equal((await app.ask("GET /v1/audit", { token })).status, 403);
});

test("an answer that is given again is not a second entry of the audit", async (t) => {
  const app = await makeTestApp(t);
  const headers = { "idempotency-key": "once" };
  const body = { model: { source: "https://models.example/a.onnx" }, target: "cpu" };
  for (let i = 0; i < 2; i++) await app.ask("POST /v1/compress", { body, headers });
  assert.equal((await readAudit(app)).entries.length, 1);
});

test("entries of the audit can be neither changed nor deleted", async () => {
  await using database = await openTestDatabase();
  const { db } = database;
  const values = sql`('audit-1', 'p', 'now', 'cancelJob', null, 'n', 's', null)`;
  const added = sql`insert into audit values ${values}`;
  await added.execute(db);
  await assert.rejects(sql`update audit set token_name = 'x'`.execute(db), /never changed/);
  await assert.rejects(sql`delete from audit`.execute(db), /never deleted/);
});

test("jobs and batches say whose request made them", async (t) => {
  const app = await makeTestApp(t);
  const { id: tokenId, token } = await createTestToken(app);
  const models = [{ source: "https://models.example/a.onnx" }];
  const answer = await app.ask("POST /v1/batches", { body: { models, targets: ["cpu"] }, token });
  const made = batch.parse(await answer.json());
  const createdBy = { tokenId, name: "ci" };
  assert.deepEqual(made.createdBy, createdBy);
  const id = made.jobs[0]?.id ?? "";
  assert.deepEqual((await app.records.jobs.find("default", id))?.createdBy, createdBy);
  const found = batch.parse(await (await app.ask(`GET /v1/batches/${made.id}`)).json());
  assert.deepEqual(found.createdBy, createdBy);
  assert.equal((await startJob(app)).createdBy?.name, "test");
});

test("a token expires after 90 days, after its own time, or never where that is asked for", async (t) => {
  const app = await makeTestApp(t);
  const lifetimes = [];
  for (const fields of [{}, { expiresInDays: 7 }, { expiresInDays: null }]) {
    const { createdAt, expiresAt } = await createTestToken(app, fields);
    lifetimes.push(
      expiresAt === null ? null : (Date.parse(expiresAt) - Date.parse(createdAt)) / dayMs,
    );
  }
  assert.deepEqual(lifetimes, [90, 7, null]);
});

test("a token reads and revokes itself, whatever its scopes", async (t) => {
  const app = await makeTestApp(t);
  const { id, token } = await createTestToken(app, { scopes: ["models:write"] });
  const own = await app.ask("GET /v1/tokens/self", { token });
  assert.equal(tokenSchema.parse(await own.json()).id, id);
  assert.equal((await app.ask("DELETE /v1/tokens/self", { token })).status, 204);
  assert.equal((await app.ask("GET /v1/tokens/self", { token })).status, 401);
});

test("a token that is replaced is valid for a day more", async (t) => {
  const app = await makeTestApp(t);
  const old = await createTestToken(app, { expiresInDays: 30 });
  const answer = await app.ask(`POST /v1/tokens/${old.id}/rotate`);
  assert.equal(answer.status, 201);
  const replaced = createdToken.parse(await answer.json());
  assert.equal(answer.headers.get("location"), `/v1/tokens/${replaced.id}`);
  assert.deepEqual([replaced.name, replaced.scopes], [old.name, old.scopes]);
  assert.equal(replaced.expiresAt, old.expiresAt);
  const statusOf = async (token: string) => (await app.ask("GET /v1/jobs", { token })).status;
  const early = await problemIn(await app.ask(`POST /v1/tokens/${old.id}/rotate`));
  assert.equal(early.code, "token_replaced");
  assert.ok(early.detail.includes(replaced.id));
  app.advance(dayMs - 1);
  assert.deepEqual([await statusOf(old.token), await statusOf(replaced.token)], [200, 200]);
  app.advance(1);
  assert.deepEqual([await statusOf(old.token), await statusOf(replaced.token)], [401, 200]);
  const again = await app.ask(`POST /v1/tokens/${old.id}/rotate`);
  assert.equal((await problemIn(again)).code, "not_found");
});

test("neither a revoked token nor one of a workflow is replaced", async (t) => {
  const app = await makeTestApp(t);
  const revoked = await createTestToken(app);
  await app.ask(`DELETE /v1/tokens/${revoked.id}`);
  const ofWorkflow = await app.records.tokens.create("default", {
    secret: "x",
    name: "run",
    scopes: ["jobs:read"],
    prefix: "mos_1234",
    hash: hashSecret("x"),
    expiresAt: "2026-01-01T01:00:00.000Z",
    policy: "main",
  });
  for (const { id } of [revoked, ofWorkflow]) {
    assert.equal((await app.ask(`POST /v1/tokens/${id}/rotate`)).status, 404);
  }
});
