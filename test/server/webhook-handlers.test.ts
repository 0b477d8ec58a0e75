import assert from "node:assert/strict";
import test from "node:test";
import { createdWebhook, webhook } from "../../src/contract/deliveries/webhook.ts";
import { limits } from "../../src/contract/limits.ts";
import { webhookRoutes } from "../../src/contract/routes/webhook-routes.ts";
import { makeNewBatch, makeNewJob } from "../records/new-jobs.ts";
import { makeTestApp, problemIn, startJob } from "./test-app.ts";

const url = "https://receiver.example/events";

const refused: Readonly<Record<string, [string, RegExp]>> = {
  "an address without TLS": ["http://receiver.example/", /must be an https/],
  "an address of this machine": ["https://127.0.0.1/", /not on the public internet/],
  "a private IPv6 address": ["https://[fd00::1]/", /not on the public internet/],
  "a user name in the address": ["https://a:b@receiver.example/", /user name/],
  "another scheme": ["ftp://receiver.example/", /Is "ftp:.*" and must be an address such as https/],
};

for (const [name, [address, message]] of Object.entries(refused)) {
  test(`POST /webhooks refuses ${name}`, async (t) => {
    const { ask } = await makeTestApp(t);
    const { errors } = await problemIn(await ask("POST /v1/webhooks", { body: { url: address } }));
    assert.equal(errors?.[0]?.pointer, "/url");
    assert.match(errors[0].message, message);
  });
}

test("a webhook's secret is shown once, and by no list", async (t) => {
  const { ask } = await makeTestApp(t);
  const headers = { "idempotency-key": "once" };
  const first = await ask("POST /v1/webhooks", { body: { url }, headers });
  const made = createdWebhook.parse(await first.json());
  const again = await ask("POST /v1/webhooks", { body: { url }, headers });
  assert.deepEqual(await again.json(), made);
  const { secret, ...shown } = made;
  assert.deepEqual(await (await ask("GET /v1/webhooks")).json(), { webhooks: [shown] });
  assert.doesNotMatch(await (await ask(`GET /v1/webhooks/${made.id}`)).text(), /whsec_/);
  assert.ok(secret.startsWith("whsec_"));
});

test("a project has as many webhooks as it may, and no more", async (t) => {
  const { ask } = await makeTestApp(t);
  for (let i = 0; i < limits.webhooks; i++) {
    assert.equal((await ask("POST /v1/webhooks", { body: { url } })).status, 201);
  }
  const { code } = await problemIn(await ask("POST /v1/webhooks", { body: { url } }));
  assert.equal(code, "too_many_webhooks");
});

test("deliveries come in pages, newest first, and go with their webhook or with their time", async (t) => {
  const { ask, records, advance, ...app } = await makeTestApp(t);
  const made = createdWebhook.parse(
    await (await ask("POST /v1/webhooks", { body: { url } })).json(),
  );
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    advance(1);
    ids.unshift((await startJob({ ask, records, advance, ...app })).id);
  }
  const schema = webhookRoutes.listDeliveries.replies[200].json;
  const list = async (query: string) => {
    const answer = await ask(`GET /v1/webhooks/${made.id}/deliveries?limit=2${query}`);
    return schema.parse(await answer.json());
  };
  const first = await list("");
  const second = await list(`&cursor=${first.nextCursor}`);
  const all = [...first.deliveries, ...second.deliveries];
  assert.deepEqual(
    all.map(({ type, status }) => [type, status]),
    ids.map(() => ["job.pending", "pending"]),
  );
  assert.deepEqual(
    all.toSorted((a, b) => (a.id < b.id ? 1 : -1)),
    all,
  );
  advance((limits.webhookDeliveryDays + 1) * 86_400_000);
  await records.webhookDeliveries.purge();
  assert.deepEqual((await list("")).deliveries, []);
  assert.equal((await ask(`DELETE /v1/webhooks/${made.id}`)).status, 204);
  const gone = await ask(`GET /v1/webhooks/${made.id}/deliveries`);
  assert.equal((await problemIn(gone)).code, "not_found");
});

test("a webhook whose deliveries wait in vain skips events, and says how many", async (t) => {
  const { ask, records } = await makeTestApp(t);
  const body = { url, events: ["job.pending", "job.cancelled"] };
  const made = createdWebhook.parse(await (await ask("POST /v1/webhooks", { body })).json());
  const read = async () => webhook.parse(await (await ask(`GET /v1/webhooks/${made.id}`)).json());
  const jobs = Array.from({ length: limits.webhookWaitingDeliveries + 3 }, () => makeNewJob());
  const batch = await records.batches.create("default", makeNewBatch({ jobs }));
  const full = await read();
  assert.equal(full.waitingDeliveries, limits.webhookWaitingDeliveries);
  assert.equal(full.skippedEvents, 3);
  assert.notEqual(full.lastSkippedAt, null);
  const outcome = { isDelivered: true, responseStatus: 204, error: null, isGone: false };
  const [delivered, ...others] = await records.webhookQueue.begin(made.id, 2);
  assert.ok(delivered);
  for (const sent of [delivered, ...others]) await records.webhookQueue.end(sent, outcome);
  assert.equal((await read()).waitingDeliveries, limits.webhookWaitingDeliveries - 2);
  for (const job of batch.jobs.slice(0, 3)) await records.jobs.cancel("default", job.id);
  const again = await read();
  assert.deepEqual(
    [again.waitingDeliveries, again.skippedEvents],
    [limits.webhookWaitingDeliveries, 4],
  );
  const replay = `POST /v1/webhooks/${made.id}/deliveries/${delivered.id}/replay`;
  const refusal = await problemIn(await ask(replay));
  assert.deepEqual([refusal.status, refusal.code], [429, "too_many_deliveries"]);
  assert.equal((await read()).waitingDeliveries, limits.webhookWaitingDeliveries);
  assert.equal((await ask(`DELETE /v1/webhooks/${made.id}`)).status, 204);
});
