import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { maxLogLineBytes } from "../../src/contract/jobs/log.ts";
import { maxReportedOutputs } from "../../src/contract/jobs/telemetry.ts";
import { limits } from "../../src/contract/limits.ts";
import { EventSender } from "../../src/worker/reporter.ts";
import { createServiceConnection, ServiceRefusal } from "../../src/worker/service-connection.ts";
import { standInService } from "./stand-in-service.ts";

const timeouts = { start: 300_000, events: 300_000, files: 300_000, token: 0 };
const minute = 60_000;

async function makeSender(t: TestContext, { token = "secret", heartbeatMs = 60_000 } = {}) {
  const id = "job-00000000000000000000000000";
  const service = await standInService(t, { id });
  const ended = Promise.withResolvers<unknown>();
  const cancelled = Promise.withResolvers<void>();
  const sender = new EventSender({
    connection: createServiceConnection({
      url: service.url,
      jobId: id,
      token: () => token,
      timeouts,
    }),
    now: () => new Date(),
    record: () => {},
    onCancelled: cancelled.resolve,
    onFailure: ended.resolve,
    heartbeatMs,
  });
  t.after(() => sender.close());
  return { service, sender, failure: ended.promise, cancelled: cancelled.promise };
}

const event = { type: "status", status: "Optimizing" } as const;

test("EventSender delivers thousands of events in order, each once", async (t) => {
  const { service, sender } = await makeSender(t);
  for (let i = 0; i < 2500; i++) sender.add(event);
  assert.equal(await sender.flush(minute), true);
  assert.deepEqual(
    service.events.map(({ seq }) => seq),
    Array.from({ length: 2500 }, (_, i) => i + 1),
  );
});

test("EventSender cuts names of outputs, and sends no more at once than the service reads", async (t) => {
  const { service, sender } = await makeSender(t);
  const outputs = Array.from({ length: maxReportedOutputs }, (_, i) => {
    const figures = { sqnrDb: 40, cosine: 1, maxAbsoluteError: 0, top1Agreement: null };
    return { name: `${i}`.padEnd(60_000, "x"), ...figures };
  });
  const accuracy = { level: "outputs", data: "caller", samples: 1, sqnrDb: 40, cosine: 1 } as const;
  sender.add({ type: "telemetry", telemetry: { accuracy: { ...accuracy, outputs } } });
  const text = '"'.repeat(maxLogLineBytes);
  for (let i = 0; i < 10; i++) sender.add({ type: "log", stream: "stdout", text });
  assert.equal(await sender.flush(minute), true);
  assert.equal(service.events.length, 11);
  assert.ok(JSON.stringify(service.events[0]).length < 32_768);
  assert.ok(service.largestBody <= limits.workerBodyBytes, `${service.largestBody} bytes`);
});

test("EventSender goes on after outages and lost answers without losing or doubling an event", async (t) => {
  const { service, sender } = await makeSender(t);
  service.outages = 2;
  service.lostAnswers = 2;
  for (let i = 0; i < 10; i++) sender.add(event);
  assert.equal(await sender.flush(minute), true);
  assert.deepEqual(
    service.events.map(({ seq }) => seq),
    Array.from({ length: 10 }, (_, i) => i + 1),
  );
});

test("EventSender passes on that the job was cancelled", async (t) => {
  const { service, sender, cancelled } = await makeSender(t);
  service.cancelled = true;
  sender.add(event);
  await cancelled;
});

test("EventSender hears that the job was cancelled although it has no events to send", async (t) => {
  const { service, sender, cancelled } = await makeSender(t, { heartbeatMs: 10 });
  sender.add(event);
  assert.equal(await sender.flush(minute), true);
  service.cancelled = true;
  await cancelled;
});

test("EventSender delivers what is added while a heartbeat is under way", async (t) => {
  const { service, sender } = await makeSender(t, { heartbeatMs: 1 });
  for (let count = 0; count < 10; count++) {
    sender.add(event);
    await service.waitFor(({ seq }) => seq === count + 1);
  }
  assert.equal(service.events.length, 10);
});

test("EventSender fails at once where the service refuses the worker", async (t) => {
  const { sender, failure } = await makeSender(t, { token: "other" });
  sender.add(event);
  assert(Object(await failure) instanceof ServiceRefusal);
  assert.equal(await sender.flush(minute), false);
});

test("EventSender's flush() ends when its time is over, though the service is out of reach", async (t) => {
  const { service, sender } = await makeSender(t);
  service.close();
  sender.add(event);
  assert.equal(await sender.flush(50), false);
});

test("EventSender fails rather than fill the memory while the service is out of reach", async (t) => {
  const { service, sender, failure } = await makeSender(t);
  service.close();
  const text = "x".repeat(60_000);
  for (let i = 0; i < 1200; i++) sender.add({ type: "log", stream: "stdout", text });
  assert.match(String(await failure), /events wait for the service/);
});
