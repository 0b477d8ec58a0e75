import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import test, { type TestContext } from "node:test";
import { summarizeJob } from "../../src/contract/jobs/summarize-job.ts";
import { batchPage } from "../../src/contract/batches/batch.ts";
import { jobSummaryPage } from "../../src/contract/jobs/job-lists.ts";
import { limits } from "../../src/contract/limits.ts";
import {
  type CreatedWebhook,
  createdWebhook,
  webhook,
} from "../../src/contract/deliveries/webhook.ts";
import { startWebhookSender } from "../../src/webhooks/webhook-sender.ts";
import { completed, endJob, submitBatch } from "../github-app/reported-batch.ts";
import { databasePath } from "../records/database-path.ts";
import { beginTestWorker, makeTestApp, startJob, type TestApp } from "../server/test-app.ts";
import { startReceiver, statusAnswer } from "./receiver.ts";
import { until } from "../support/until.ts";

const publicUrl = "https://mos.example";

/** An app that sends its events, and a receiver of them. */
async function startSending(t: TestContext, request: object = {}) {
  const app = await makeTestApp(t, { allowPrivateAddresses: true });
  const receiver = await startReceiver(t);
  const body = { url: `${receiver.url}/events`, ...request };
  const answer = await app.ask("POST /v1/webhooks", { body });
  const made = createdWebhook.parse(await answer.json());
  const stopSending = startSender(t, app);
  return { app, receiver, made, stopSending };
}

/** Sends until it is stopped, or the test ends. */
function startSender(t: TestContext, { records }: TestApp, allowPrivateAddresses = true) {
  const log = () => {};
  const now = () => new Date();
  const options = { records, allowPrivateAddresses, publicUrl, now, log };
  const sender = startWebhookSender(options);
  let stopped: PromiseLike<void> | undefined;
  const stop = async () => (stopped ??= sender[Symbol.asyncDispose]());
  t.after(stop);
  return stop;
}

/** The signature as Standard Webhooks defines it. */
function computeSignature(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: string },
): string {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}

async function listDeliveries({ records }: TestApp, { id }: CreatedWebhook) {
  return (await records.webhookDeliveries.list(id, { limit: 200 })).deliveries;
}

/** The webhook's newest delivery, once its last attempt has ended as it should. */
async function untilDelivery(
  app: TestApp,
  made: CreatedWebhook,
  isWanted: (one: Awaited<ReturnType<typeof listDeliveries>>[number]) => boolean,
) {
  return until(`the newest delivery fits ${String(isWanted)}`, async () => {
    const [newest] = await listDeliveries(app, made);
    return newest && isWanted(newest) && newest;
  });
}

async function findWebhook({ ask }: TestApp, { id }: CreatedWebhook) {
  return webhook.parse(await (await ask(`GET /v1/webhooks/${id}`)).json());
}

test("each status of a job is an event with a signature that the secret confirms", async (t) => {
  const { app, receiver, made } = await startSending(t);
  assert.match(made.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const job = await startJob(app);
  const { id } = job;
  await endJob(app, id, completed);
  await receiver.next(3);
  const sent = receiver.received.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  assert.deepEqual(
    sent.map(({ event }) => event.type),
    ["job.pending", "job.sharding", "job.optimizing", "job.completed"],
  );
  const links = { self: `${publicUrl}/v1/jobs/${id}`, page: `${publicUrl}/jobs/${id}` };
  assert.deepEqual(sent[0]?.event.data, { ...summarizeJob(job), links });
  const listed = await (await app.ask("GET /v1/jobs/summaries")).json();
  const [last] = jobSummaryPage.parse(listed).jobs;
  assert.deepEqual(sent[3]?.event.data, { ...last, links });
  for (const each of sent) {
    assert.deepEqual(each.signatures, [computeSignature(made.secret, each)]);
    assert.ok(Math.abs(Date.now() / 1000 - Number(each.timestamp)) < 300);
  }
  assert.equal(new Set(sent.map((each) => each.id)).size, 4);
});

test("a batch's events come too, and a webhook gets only those that it asked for", async (t) => {
  const { app, receiver } = await startSending(t, { events: ["batch.*", "job.completed"] });
  const models = [{ source: "https://models.example/a.onnx" }];
  const { id, jobs } = await submitBatch(app, { models, targets: ["cpu"] });
  for (const job of jobs) await endJob(app, job.id, completed);
  await receiver.next(2);
  const types = receiver.received.map(({ event }) => `${event.type} ${event.data.id}`);
  const wanted = [`batch.completed ${id}`, `batch.pending ${id}`, `job.completed ${jobs[0]?.id}`];
  assert.deepEqual(types.toSorted(), wanted);
  const listed = batchPage.parse(await (await app.ask("GET /v1/batches")).json());
  const ended = receiver.received.find(({ event }) => event.type === "batch.completed");
  const links = { self: `${publicUrl}/v1/batches/${id}`, page: `${publicUrl}/batches/${id}` };
  assert.deepEqual(ended?.event.data, { ...listed.batches[0], links });
});

test("statuses that a job passes in one change are sent as they were entered", async (t) => {
  const { app, receiver } = await startSending(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    {
      type: "result",
      outcome: "Failed",
      error: { code: "model_invalid", message: "No ONNX model" },
    },
  );
  await receiver.next(3);
  const sent = receiver.received.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  assert.deepEqual(
    sent.map(({ event: { data } }) => [data.status, "statusReason" in data && data.statusReason]),
    [
      ["Pending", "queued"],
      ["Sharding", "sharding"],
      ["Optimizing", "optimizing"],
      ["Failed", "model_invalid"],
    ],
  );
  assert.deepEqual(
    sent.map(({ event: { data } }) => data.finishedAt !== null),
    [false, false, false, true],
  );
});

test("an event that a version before queued is sent as it is", async (t) => {
  const database = await databasePath(t);
  const app = await makeTestApp(t, { allowPrivateAddresses: true, database });
  const receiver = await startReceiver(t);
  await app.ask("POST /v1/webhooks", { body: { url: receiver.url } });
  const { id } = await startJob(app);
  const queued = {
    type: "job.pending",
    timestamp: "2026-01-01T00:00:00.000Z",
    data: { id, name: "detector", status: "Pending", links: { self: `/v1/jobs/${id}` } },
  };
  const file = new DatabaseSync(database);
  file.prepare("update webhook_deliveries set body = ?").run(JSON.stringify(queued));
  file.close();
  startSender(t, app);
  const { body } = await receiver.next(0);
  const links = { self: `${publicUrl}/v1/jobs/${id}` };
  assert.deepEqual(JSON.parse(body), { ...queued, data: { ...queued.data, links } });
});

test("a receiver that fails gets the event again, with the same id, until it takes it", async (t) => {
  const { app, receiver, made } = await startSending(t);
  receiver.answerWith(statusAnswer(503));
  await startJob(app);
  const first = await receiver.next(0);
  const failed = await untilDelivery(app, made, ({ error }) => error !== null);
  assert.deepEqual(
    [failed.status, failed.attempts, failed.responseStatus, failed.error],
    ["pending", 1, 503, "The receiver answered 503"],
  );
  assert.equal(failed.nextAttemptAt, "2026-01-01T00:00:05.000Z");
  receiver.answerWith(statusAnswer(200));
  app.advance(5_000);
  const second = await receiver.next(1);
  assert.deepEqual([second.id, second.body], [first.id, first.body]);
  const { attempts } = await untilDelivery(app, made, ({ status }) => status === "delivered");
  assert.equal(attempts, 2);
  assert.equal((await findWebhook(app, made)).lastSuccessAt, "2026-01-01T00:00:05.000Z");
});

test("a webhook is disabled after an event that failed for days, and goes on when enabled", async (t) => {
  const { app, receiver, made } = await startSending(t, { events: ["job.pending"] });
  receiver.answerWith(statusAnswer(500));
  const { id } = await startJob(app);
  for (let attempt = 1; attempt <= limits.webhookAttempts; attempt++) {
    await receiver.next(attempt - 1);
    await untilDelivery(app, made, (one) => one.attempts === attempt && one.error !== null);
    app.advance(limits.webhookLongestRetrySeconds * 1000);
  }
  const [failed] = await listDeliveries(app, made);
  assert.deepEqual([failed?.status, failed?.nextAttemptAt], ["failed", null]);
  const disabled = await findWebhook(app, made);
  assert.equal(
    disabled.disabledReason,
    `Delivery "${failed?.id}" failed 10 times, and no other succeeded meanwhile: The receiver answered 500`,
  );
  await startJob(app);
  assert.equal((await listDeliveries(app, made)).length, 1);
  receiver.answerWith(statusAnswer(200));
  await app.ask(`POST /v1/webhooks/${made.id}/enable`);
  await app.ask(`POST /v1/webhooks/${made.id}/deliveries/${failed?.id}/replay`);
  const { event } = await receiver.next(limits.webhookAttempts);
  assert.equal(event.data.id, id);
  assert.equal((await findWebhook(app, made)).disabledAt, null);
});

test("a delivery that is replayed during an attempt is sent again, however that one ends", async (t) => {
  const app = await makeTestApp(t, { allowPrivateAddresses: true });
  const answer = await app.ask("POST /v1/webhooks", { body: { url: "https://hooks.test/" } });
  const made = createdWebhook.parse(await answer.json());
  await startJob(app);
  const { begin, end } = app.records.webhookQueue;
  const [underWay] = await begin(made.id, 1);
  assert.ok(underWay);
  await app.ask(`POST /v1/webhooks/${made.id}/deliveries/${underWay.id}/replay`);
  const gone = { isDelivered: false, isGone: true, responseStatus: 410, error: "gone" };
  await end(underWay, gone);
  const [replayed] = await listDeliveries(app, made);
  assert.deepEqual([replayed?.status, replayed?.attempts], ["pending", 0]);
  assert.equal((await findWebhook(app, made)).disabledAt, null);
  const [again] = await begin(made.id, 1);
  assert.deepEqual([again?.id, again?.attempt], [underWay.id, 1]);
});

test("a replica sends when it leads", async (t) => {
  const app = await makeTestApp(t, { allowPrivateAddresses: true });
  const receiver = await startReceiver(t);
  const body = { url: receiver.url, events: ["job.pending"] };
  await app.ask("POST /v1/webhooks", { body });
  const { id } = await startJob(app);
  let looks = 0;
  const replica = { ...app.records.replica, isLeader: () => ++looks > 1 };
  startSender(t, { ...app, records: { ...app.records, replica } });
  assert.equal((await receiver.next(0)).event.data.id, id);
  assert.ok(looks > 1);
});

test("a receiver that answers 410 is sent nothing more", async (t) => {
  const { app, receiver, made } = await startSending(t);
  receiver.answerWith(statusAnswer(410));
  await startJob(app);
  await untilDelivery(app, made, ({ status }) => status === "failed");
  const { disabledReason } = await findWebhook(app, made);
  assert.equal(disabledReason, "The receiver answered 410");
  await startJob(app);
  assert.equal((await listDeliveries(app, made)).length, 1);
});

test("redirects are not followed", async (t) => {
  const { app, receiver, made } = await startSending(t);
  const elsewhere = await startReceiver(t);
  receiver.answerWith(statusAnswer(307, { location: elsewhere.url }));
  await startJob(app);
  const { error } = await untilDelivery(app, made, (one) => one.error !== null);
  assert.equal(error, "The receiver answered 307; redirects are not followed");
  assert.deepEqual(elsewhere.received, []);
});

test("a receiver that hangs does not keep events from others, and its event comes again", async (t) => {
  const { app, receiver, made, stopSending } = await startSending(t);
  const other = await startReceiver(t);
  await app.ask("POST /v1/webhooks", { body: { url: other.url } });
  receiver.answerWith(() => {});
  for (let i = 0; i < 2 * limits.webhookDeliveriesAtOnce; i++) await startJob(app);
  await receiver.next(limits.webhookDeliveriesAtOnce - 1);
  await other.next(2 * limits.webhookDeliveriesAtOnce - 1);
  assert.equal(receiver.received.length, limits.webhookDeliveriesAtOnce);
  await stopSending();
  receiver.answerWith(statusAnswer(204));
  app.advance((limits.webhookAnswerSeconds + limits.webhookFirstRetrySeconds) * 1000);
  startSender(t, app);
  await receiver.next(3 * limits.webhookDeliveriesAtOnce - 1);
  const ids = new Set(receiver.received.map(({ id }) => id));
  assert.equal(ids.size, 2 * limits.webhookDeliveriesAtOnce);
  assert.equal((await findWebhook(app, made)).disabledAt, null);
});

test("an answer that does not come within its time is a failed attempt", async (t) => {
  const { app, receiver, made } = await startSending(t);
  receiver.answerWith(() => {});
  await startJob(app);
  const { error } = await untilDelivery(app, made, (one) => one.error !== null);
  assert.match(error ?? "", /timeout/i);
});

test("a secret that was replaced signs too, for a day", async (t) => {
  const { app, receiver, made } = await startSending(t, { events: ["job.pending"] });
  const answer = await app.ask(`POST /v1/webhooks/${made.id}/rotate`);
  const rotated = createdWebhook.parse(await answer.json());
  assert.notEqual(rotated.secret, made.secret);
  await startJob(app);
  const first = await receiver.next(0);
  const both = [rotated, made].map(({ secret }) => computeSignature(secret, first));
  assert.deepEqual(first.signatures, both);
  app.advance(limits.rotationHours * 3_600_000);
  await startJob(app);
  const second = await receiver.next(1);
  assert.deepEqual(second.signatures, [computeSignature(rotated.secret, second)]);
});

test("a name that leads to a private address is not connected to", async (t) => {
  const app = await makeTestApp(t);
  const receiver = await startReceiver(t);
  const url = receiver.url.replace("http://127.0.0.1", "https://localhost");
  const answer = await app.ask("POST /v1/webhooks", { body: { url } });
  const made = createdWebhook.parse(await answer.json());
  startSender(t, app, false);
  await startJob(app);
  const { error } = await untilDelivery(app, made, (one) => one.error !== null);
  assert.match(error ?? "", /"localhost" is not on the public internet/);
  assert.deepEqual(receiver.received, []);
});
