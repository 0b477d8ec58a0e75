import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test, { type TestContext } from "node:test";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import { administratorId } from "../../src/contract/people/person.ts";
import { permissionTable } from "../../src/contract/people/permissions.ts";
import type { Route } from "../../src/contract/routes/route.ts";
import { type RouteName, routes } from "../../src/contract/routes/routes.ts";
import type { Scope } from "../../src/contract/people/token.ts";
import { createdWebhook } from "../../src/contract/deliveries/webhook.ts";
import { beginTestWorker, makeTestApp, type TestApp } from "./test-app.ts";
import { proposal, pushed, tenantToken, workflowScopes } from "./tenant-tokens.ts";

const content = Buffer.from("the model of a tenant");
const sha256 = createHash("sha256").update(content).digest("hex");
const source = `upload:sha256:${sha256}`;
/** No answer to a stranger may contain it. */
const secretName = "confidential";

/** What belongs to a pull request of the repository acme/models. */
interface Belongings {
  readonly job: string;
  readonly batch: string;
  readonly tokenId: string;
  readonly webhook: string;
  readonly delivery: string;
}

interface Row {
  readonly call: (things: Belongings) => string;
  readonly body?: unknown;
  readonly owner: number;
  readonly otherProject: number;
  readonly otherRepository: number;
  readonly otherCommit: number;
}

const model = { source, name: secretName };
const job = { model, target: "cpu" };
const hidden = { otherProject: 404, otherRepository: 404, otherCommit: 404 };
/** Uploads are the repository's, whatever the commit. */
const shared = { otherProject: 422, otherRepository: 422, otherCommit: 202 };
const notForWorkflows = { otherRepository: 403, otherCommit: 403 };
const ownOnly = { owner: 200, otherProject: 200, otherRepository: 200, otherCommit: 200 };

const withoutSession = {
  owner: 204,
  otherProject: 204,
  otherRepository: 204,
  otherCommit: 204,
};

/** Every route, and the status with which it answers its owner and strangers with every scope. */
const matrix: Readonly<Record<RouteName, Row>> = {
  startCompression: { call: () => "POST /v1/compress", body: job, owner: 202, ...shared },
  startQuantization: { call: () => "POST /v1/quantize", body: job, owner: 202, ...shared },
  listJobs: { call: () => "GET /v1/jobs", ...ownOnly },
  listJobSummaries: { call: () => "GET /v1/jobs/summaries", ...ownOnly },
  countJobs: { call: () => "GET /v1/jobs/counts", ...ownOnly },
  getJob: { call: (things) => `GET /v1/jobs/${things.job}`, owner: 200, ...hidden },
  cancelJob: { call: (things) => `POST /v1/jobs/cancel/${things.job}`, owner: 202, ...hidden },
  // Their owner learns that they have not ended.
  retryJob: { call: (things) => `POST /v1/jobs/${things.job}/retry`, owner: 409, ...hidden },
  deleteJob: { call: (things) => `DELETE /v1/jobs/${things.job}`, owner: 409, ...hidden },
  streamLogs: {
    call: (things) => `GET /v1/jobs/${things.job}/logs?follow=false`,
    owner: 200,
    ...hidden,
  },
  streamEvents: { call: () => "GET /v1/events?after=0&follow=false", ...ownOnly },
  listArtifacts: {
    call: (things) => `GET /v1/jobs/${things.job}/artifacts`,
    owner: 200,
    ...hidden,
  },
  getAttestations: {
    call: (things) => `GET /v1/jobs/${things.job}/attestations`,
    owner: 409,
    ...hidden,
  },
  getModelSignature: {
    call: (things) => `GET /v1/jobs/${things.job}/model-signature`,
    owner: 409,
    ...hidden,
  },
  getModelBom: {
    call: (things) => `GET /v1/jobs/${things.job}/model-bom`,
    owner: 409,
    ...hidden,
  },
  getArtifact: {
    call: (things) => `GET /v1/jobs/${things.job}/artifacts/model.onnx`,
    owner: 200,
    ...hidden,
  },
  linkArtifact: {
    call: (things) => `POST /v1/jobs/${things.job}/artifacts/model.onnx/link`,
    body: {},
    owner: 201,
    ...hidden,
  },
  deleteLinks: { call: (things) => `DELETE /v1/jobs/${things.job}/links`, owner: 204, ...hidden },
  // A signature that nobody made.
  getLinkedArtifact: {
    call: (things) =>
      `GET /v1/links/${things.job}/model.onnx?expires=4000000000&sha256=${sha256}&signature=${"A".repeat(43)}`,
    owner: 404,
    ...hidden,
  },
  describeLink: {
    call: (things) =>
      `GET /v1/links/${things.job}/model.onnx/summary?expires=4000000000&sha256=${sha256}&signature=${"A".repeat(43)}`,
    owner: 404,
    ...hidden,
  },
  getBatchArtifacts: {
    call: (things) => `GET /v1/batches/${things.batch}/artifacts`,
    owner: 200,
    ...hidden,
  },
  submitBatch: {
    call: () => "POST /v1/batches",
    body: { models: [model], targets: ["cpu"] },
    owner: 202,
    ...shared,
  },
  listSuites: { call: () => "GET /v1/suites", ...ownOnly },
  getSuiteHistory: { call: () => "GET /v1/suites/history?suite=nightly", ...ownOnly },
  listBatches: { call: () => "GET /v1/batches", ...ownOnly },
  getBatch: { call: (things) => `GET /v1/batches/${things.batch}`, owner: 200, ...hidden },
  cancelBatch: {
    call: (things) => `POST /v1/batches/cancel/${things.batch}`,
    owner: 202,
    ...hidden,
  },
  // No job of it failed.
  retryBatch: { call: (things) => `POST /v1/batches/${things.batch}/retry`, owner: 409, ...hidden },
  deleteBatch: { call: (things) => `DELETE /v1/batches/${things.batch}`, owner: 409, ...hidden },
  listModelVersions: { call: () => "GET /v1/model-versions", ...ownOnly },
  listModels: {
    call: () => "GET /v1/models",
    owner: 200,
    otherProject: 200,
    otherRepository: 403,
    otherCommit: 403,
  },
  deleteModel: {
    call: () => `DELETE /v1/models/${sha256}`,
    owner: 409,
    otherProject: 404,
    otherRepository: 403,
    otherCommit: 403,
  },
  findModel: {
    call: () => `HEAD /v1/models/${sha256}`,
    owner: 200,
    ...hidden,
    otherCommit: 200,
  },
  uploadModel: {
    call: () => `PUT /v1/models/${sha256}`,
    owner: 200,
    otherProject: 422,
    otherRepository: 422,
    otherCommit: 200,
  },
  // A file that the caller has not uploaded does not exist for it.
  createManifest: {
    call: () => "POST /v1/manifests",
    body: { files: [{ path: "net.onnx", sha256 }] },
    // The repository's other commit has made the same one.
    owner: 200,
    otherProject: 422,
    otherRepository: 422,
    otherCommit: 201,
  },
  listTargets: { call: () => "GET /v1/targets", ...ownOnly },
  // There is none.
  checkTrustPolicy: {
    call: () => "POST /v1/trust-policy/check",
    body: { claims: {} },
    owner: 403,
    otherProject: 403,
    ...notForWorkflows,
  },
  getSelf: { call: () => "GET /v1/self", ...ownOnly },
  findPeople: {
    call: () => "GET /v1/people?email=ada@example.com",
    owner: 200,
    otherProject: 200,
    ...notForWorkflows,
  },
  listMembers: {
    call: () => "GET /v1/projects/default/members",
    owner: 200,
    otherProject: 404,
    ...notForWorkflows,
  },
  putMember: {
    call: () => `PUT /v1/projects/default/members/${administratorId}`,
    body: { role: "viewer" },
    owner: 404,
    otherProject: 404,
    ...notForWorkflows,
  },
  removeMember: {
    call: () => `DELETE /v1/projects/default/members/${administratorId}`,
    owner: 404,
    otherProject: 404,
    ...notForWorkflows,
  },
  // A token has no session.
  switchProject: {
    call: () => "PUT /v1/sessions/self",
    body: { project: "default" },
    owner: 404,
    ...hidden,
  },
  getSignInMethods: { call: () => "GET /v1/sessions/methods", ...ownOnly },
  signIn: {
    call: () => "POST /v1/sessions",
    body: { secret: "a".repeat(43) },
    owner: 403,
    otherProject: 403,
    otherRepository: 403,
    otherCommit: 403,
  },
  listSessions: { call: () => "GET /v1/sessions", ...ownOnly },
  signOut: { call: () => "DELETE /v1/sessions/self", ...withoutSession },
  signOutEverywhere: { call: () => "DELETE /v1/sessions", ...withoutSession },
  getAttestationKey: { call: () => "GET /v1/attestation-key", ...ownOnly },
  getOpenApi: { call: () => "GET /v1/openapi.json", ...ownOnly },
  listTokens: {
    call: () => "GET /v1/tokens",
    owner: 200,
    otherProject: 200,
    otherRepository: 403,
    otherCommit: 403,
  },
  createToken: {
    call: () => "POST /v1/tokens",
    body: { name: "mine", scopes: ["admin"], project: "default" },
    owner: 201,
    otherProject: 403,
    otherRepository: 403,
    otherCommit: 403,
  },
  revokeToken: {
    call: (things) => `DELETE /v1/tokens/${things.tokenId}`,
    owner: 204,
    otherProject: 404,
    otherRepository: 403,
    otherCommit: 403,
  },
  getOwnToken: { call: () => "GET /v1/tokens/self", ...ownOnly },
  revokeOwnToken: {
    call: () => "DELETE /v1/tokens/self",
    owner: 204,
    otherProject: 204,
    otherRepository: 204,
    otherCommit: 204,
  },
  rotateToken: {
    call: (things) => `POST /v1/tokens/${things.tokenId}/rotate`,
    owner: 201,
    otherProject: 404,
    otherRepository: 403,
    otherCommit: 403,
  },
  listAudit: {
    call: () => "GET /v1/audit",
    owner: 200,
    otherProject: 200,
    otherRepository: 403,
    otherCommit: 403,
  },
  getUsage: {
    call: () => "GET /v1/usage",
    owner: 200,
    otherProject: 200,
    otherRepository: 403,
    otherCommit: 403,
  },
  getStatus: {
    call: () => "GET /v1/status",
    owner: 200,
    otherProject: 403,
    otherRepository: 403,
    otherCommit: 403,
  },
  listWebhooks: {
    call: () => "GET /v1/webhooks",
    owner: 200,
    otherProject: 200,
    ...notForWorkflows,
  },
  createWebhook: {
    call: () => "POST /v1/webhooks",
    body: { url: "https://receiver.example/" },
    owner: 201,
    otherProject: 201,
    ...notForWorkflows,
  },
  getWebhook: {
    call: (things) => `GET /v1/webhooks/${things.webhook}`,
    owner: 200,
    otherProject: 404,
    ...notForWorkflows,
  },
  rotateWebhook: {
    call: (things) => `POST /v1/webhooks/${things.webhook}/rotate`,
    owner: 201,
    otherProject: 404,
    ...notForWorkflows,
  },
  enableWebhook: {
    call: (things) => `POST /v1/webhooks/${things.webhook}/enable`,
    owner: 200,
    otherProject: 404,
    ...notForWorkflows,
  },
  deleteWebhook: {
    call: (things) => `DELETE /v1/webhooks/${things.webhook}`,
    owner: 204,
    otherProject: 404,
    ...notForWorkflows,
  },
  listDeliveries: {
    call: (things) => `GET /v1/webhooks/${things.webhook}/deliveries`,
    owner: 200,
    otherProject: 404,
    ...notForWorkflows,
  },
  replayDelivery: {
    call: (things) => `POST /v1/webhooks/${things.webhook}/deliveries/${things.delivery}/replay`,
    owner: 202,
    otherProject: 404,
    ...notForWorkflows,
  },
  exchangeToken: {
    call: () => "POST /v1/tokens/exchange",
    body: { token: "eyJ" },
    owner: 403,
    otherProject: 403,
    otherRepository: 403,
    otherCommit: 403,
  },
  listProjects: {
    call: () => "GET /v1/projects",
    owner: 200,
    otherProject: 403,
    otherRepository: 403,
    otherCommit: 403,
  },
  createProject: {
    call: () => "PUT /v1/projects/mine",
    owner: 201,
    otherProject: 403,
    otherRepository: 403,
    otherCommit: 403,
  },
};

/** A service with a job, a batch, a model and a token of a pull request. */
async function prepare(t: TestContext) {
  const app = await makeTestApp(t);
  const owner = await tenantToken(app, { workflow: proposal });
  const put = await app.ask(`PUT /v1/models/${sha256}`, {
    token: owner.token,
    body: String(content),
    headers: { "content-type": "" },
  });
  assert.equal(put.status, 201, await put.text());
  const webhookRequest = { url: "https://receiver.example/", description: secretName };
  const made = await app.ask("POST /v1/webhooks", { body: webhookRequest });
  const webhook = createdWebhook.parse(await made.json()).id;
  const body = { name: secretName, models: [model], targets: ["cpu", "cpu-int8"] };
  const answer = await app.ask("POST /v1/batches", { token: owner.token, body });
  const batch = batchSchema.parse(await answer.json());
  const [first] = batch.jobs;
  const worker = await beginTestWorker(app, first?.id ?? "");
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "log", stream: "stdout", text: secretName },
    {
      type: "artifact",
      artifact: { name: "model.onnx", kind: "model", ...(await worker.store(String(content))) },
    },
  );
  const revocable = await tenantToken(app, { scopes: ["jobs:read"] });
  const { deliveries } = await app.records.webhookDeliveries.list(webhook, { limit: 1 });
  const delivery = deliveries[0]?.id ?? "";
  const things = {
    job: first?.id ?? "",
    batch: batch.id,
    tokenId: revocable.id,
    webhook,
    delivery,
  };
  return { app, owner: owner.token, things };
}

type Stranger = keyof Pick<Row, "otherProject" | "otherRepository" | "otherCommit">;

/** Strangers with every scope that a token like theirs can have. */
const strangers: Readonly<Record<Stranger, (app: TestApp) => Promise<{ token: string }>>> = {
  otherProject: (app) => tenantToken(app, { project: "other", scopes: ["admin"] }),
  otherRepository: (app) =>
    tenantToken(app, {
      workflow: { ...pushed, repositoryId: "124", repository: "acme/other" },
    }),
  otherCommit: (app) => tenantToken(app, { workflow: { ...proposal, commit: "b".repeat(40) } }),
};

for (const [name, route] of Object.entries<Route>(routes)) {
  const row = matrix[name as RouteName];
  const { scope, reach } = permissionTable[route.action];
  const isForPeople = scope === "admin" || reach === "project" || reach === "own";
  const ask = ({ app, things }: Awaited<ReturnType<typeof prepare>>, token: string) =>
    app.ask(row.call(things), { token, body: row.body });

  test(`${name} reaches nothing of another project, repository or commit`, async (t) => {
    const service = await prepare(t);
    for (const [stranger, makeToken] of Object.entries(strangers)) {
      const { token } = await makeToken(service.app);
      const answer = await ask(service, token);
      assert.equal(
        answer.status,
        row[stranger as Stranger],
        `${stranger}: ${await answer.clone().text()}`,
      );
      if (row[stranger as Stranger] === 202) continue;
      const text = await answer.text();
      assert.ok(!text.includes(secretName), `${stranger}: ${text}`);
    }
    const owner = isForPeople ? await service.app.tokenFor("admin") : service.owner;
    assert.equal((await ask(service, owner)).status, row.owner);
  });

  if (route.open) continue;
  test(`${name} knows no token that has expired, was revoked or has another scope`, async (t) => {
    const service = await prepare(t);
    const { app } = service;
    const scopes: readonly Scope[] = ["admin"];
    const expired = await tenantToken(app, { scopes, expiresAt: "2025-12-31T00:00:00.000Z" });
    assert.equal((await ask(service, expired.token)).status, 401);
    const revoked = await tenantToken(app, { scopes });
    await app.records.tokens.revoke("default", revoked.id);
    assert.equal((await ask(service, revoked.token)).status, 401);
    const others = workflowScopes.filter((other) => other !== scope);
    const narrow = await tenantToken(app, { scopes: others });
    assert.equal((await ask(service, narrow.token)).status, scope === null ? row.owner : 403);
  });
}

test("the matrix has a row for each route and for no other", () => {
  assert.deepEqual(Object.keys(matrix).toSorted(), Object.keys(routes).toSorted());
});

test("what strangers asked of a batch has not changed it", async (t) => {
  const { app, things } = await prepare(t);
  for (const makeToken of Object.values(strangers)) {
    const { token } = await makeToken(app);
    await app.ask(`POST /v1/batches/cancel/${things.batch}`, { token });
    await app.ask(`POST /v1/jobs/cancel/${things.job}`, { token });
  }
  const job = await app.records.jobs.find("default", things.job);
  assert.equal(job?.status, "Sharding");
});
