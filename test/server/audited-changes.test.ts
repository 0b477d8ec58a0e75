import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { type TestContext } from "node:test";
import { auditPage } from "../../src/contract/people/audit.ts";
import { batch } from "../../src/contract/batches/batch.ts";
import { administratorId } from "../../src/contract/people/person.ts";
import type { Routes } from "../../src/contract/routes/routes.ts";
import { createdToken } from "../../src/contract/people/token.ts";
import { createdWebhook } from "../../src/contract/deliveries/webhook.ts";
import { ownPage, signInTestPerson } from "./test-sessions.ts";
import { beginTestWorker, makeTestApp, startJob, type TestApp } from "./test-app.ts";

type AuditedRoute = {
  [Name in keyof Routes]: Routes[Name] extends { readonly audited: true } ? Name : never;
}[keyof Routes];

/** Prepares a request that changes something, and gives its call and its options. */
type Prepare = (app: TestApp) => Promise<Parameters<TestApp["ask"]>>;

const model = { source: "https://models.example/detector.onnx" };
const tokenRequest = { name: "ci", scopes: ["jobs:read"] };

async function makeToken({ ask }: TestApp) {
  return createdToken.parse(await (await ask("POST /v1/tokens", { body: tokenRequest })).json());
}

const webhookRequest = { url: "https://receiver.example/events" };

async function makeWebhook({ ask }: TestApp) {
  const answer = await ask("POST /v1/webhooks", { body: webhookRequest });
  return createdWebhook.parse(await answer.json());
}

async function asPerson(app: TestApp, call: string): Promise<Parameters<TestApp["ask"]>> {
  return [call, { token: null, headers: { ...(await signInTestPerson(app)), ...ownPage } }];
}

const changes: Readonly<Record<AuditedRoute, Prepare>> = {
  startCompression: async () => ["POST /v1/compress", { body: { model, target: "cpu" } }],
  startQuantization: async () => ["POST /v1/quantize", { body: { model, target: "cpu" } }],
  cancelJob: async (app) => [`POST /v1/jobs/cancel/${(await startJob(app)).id}`],
  submitBatch: async () => ["POST /v1/batches", { body: { models: [model], targets: ["cpu"] } }],
  async cancelBatch({ ask }) {
    const body = { models: [model], targets: ["cpu"] };
    const { id } = batch.parse(await (await ask("POST /v1/batches", { body })).json());
    return [`POST /v1/batches/cancel/${id}`];
  },
  async deleteBatch(app) {
    const [call] = await changes.cancelBatch(app);
    await app.ask(call);
    return [call.replace("POST", "DELETE").replace("/cancel", "")];
  },
  async deleteJob(app) {
    const { id } = await startJob(app);
    await app.ask(`POST /v1/jobs/cancel/${id}`);
    return [`DELETE /v1/jobs/${id}`];
  },
  async retryJob(app) {
    const { id } = await startJob(app);
    await app.ask(`POST /v1/jobs/cancel/${id}`);
    return [`POST /v1/jobs/${id}/retry`];
  },
  async retryBatch(app) {
    const [call] = await changes.cancelBatch(app);
    await app.ask(call);
    return [`${call.replace("/cancel", "")}/retry?status=Cancelled`];
  },
  async linkArtifact(app) {
    const { id } = await startJob(app);
    const worker = await beginTestWorker(app, id);
    const blob = await worker.store("a model");
    await worker.report(
      { type: "status", status: "Sharding" },
      { type: "artifact", artifact: { name: "model.onnx", kind: "model", ...blob } },
    );
    return [`POST /v1/jobs/${id}/artifacts/model.onnx/link`, { body: {} }];
  },
  async deleteLinks(app) {
    const { id } = await startJob(app);
    return [`DELETE /v1/jobs/${id}/links`];
  },
  createWebhook: async () => ["POST /v1/webhooks", { body: webhookRequest }],
  rotateWebhook: async (app) => [`POST /v1/webhooks/${(await makeWebhook(app)).id}/rotate`],
  enableWebhook: async (app) => [`POST /v1/webhooks/${(await makeWebhook(app)).id}/enable`],
  deleteWebhook: async (app) => [`DELETE /v1/webhooks/${(await makeWebhook(app)).id}`],
  async replayDelivery(app) {
    const { id } = await makeWebhook(app);
    await startJob(app);
    const { deliveries } = await app.records.webhookDeliveries.list(id, { limit: 1 });
    return [`POST /v1/webhooks/${id}/deliveries/${deliveries[0]?.id}/replay`];
  },
  async deleteModel(app) {
    const [call, options] = await changes.uploadModel(app);
    await app.ask(call, options);
    return [call.replace("PUT", "DELETE")];
  },
  createToken: async () => ["POST /v1/tokens", { body: tokenRequest }],
  rotateToken: async (app) => [`POST /v1/tokens/${(await makeToken(app)).id}/rotate`],
  revokeToken: async (app) => [`DELETE /v1/tokens/${(await makeToken(app)).id}`],
  revokeOwnToken: async (app) => {
    return ["DELETE /v1/tokens/self", { token: (await makeToken(app)).token }];
  },
  signOut: (app) => asPerson(app, "DELETE /v1/sessions/self"),
  signOutEverywhere: (app) => asPerson(app, "DELETE /v1/sessions"),
  switchProject: async (app) => {
    const [call, options] = await asPerson(app, "PUT /v1/sessions/self");
    return [call, { ...options, body: { project: "default" } }];
  },
  async putMember(app) {
    await signInTestPerson(app);
    const path = `/v1/projects/default/members/${administratorId}`;
    return [`PUT ${path}`, { body: { role: "admin" } }];
  },
  async removeMember(app) {
    const [call] = await changes.putMember(app);
    return [call.replace("PUT", "DELETE")];
  },
  createProject: async () => ["PUT /v1/projects/vision"],
  async uploadModel() {
    const sha256 = createHash("sha256").update("a model").digest("hex");
    const headers = { "content-type": "application/octet-stream" };
    return [`PUT /v1/models/${sha256}`, { body: "a model", headers }];
  },
  async createManifest(app) {
    const [call, options] = await changes.uploadModel(app);
    await app.ask(call, options);
    const sha256 = call.slice(-64);
    return ["POST /v1/manifests", { body: { files: [{ path: "net.onnx", sha256 }] } }];
  },
};

const tables = [
  "jobs",
  "batches",
  "tokens",
  "sessions",
  "people",
  "members",
  "projects",
  "project_blobs",
  "webhooks",
  "webhook_deliveries",
];

/** An app, and its database as another process sees it. */
async function openApp(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "audited-"));
  const file = join(folder, "records.sqlite");
  const app = await makeTestApp(t, { database: file });
  const database = new DatabaseSync(file);
  t.after(async () => {
    database.close();
    await rm(folder, { recursive: true });
  });
  const dump = () =>
    tables.map((table) =>
      database
        .prepare(`select * from ${table}`)
        .all()
        .map((row) => ({ ...row, last_used_at: null })),
    );
  return { app, database, dump };
}

for (const [name, prepare] of Object.entries(changes)) {
  test(`${name} changes nothing where the audit cannot be written`, async (t) => {
    const { app, database, dump } = await openApp(t);
    const call = await prepare(app);
    database.exec(`create trigger audit_is_full before insert on audit
      begin select raise(abort, 'The audit is full'); end`);
    const before = dump();
    assert.equal((await app.ask(...call)).status, 500);
    assert.deepEqual(dump(), before);
  });

  test(`${name} is in the audit once`, async (t) => {
    const { app } = await openApp(t);
    const call = await prepare(app);
    assert.ok((await app.ask(...call)).ok);
    const { entries } = auditPage.parse(await (await app.ask("GET /v1/audit")).json());
    assert.equal(entries.filter(({ action }) => action === name).length, 1);
  });
}
