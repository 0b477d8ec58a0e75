import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { limits } from "../../src/contract/limits.ts";
import { beginTestWorker, logEvent, makeTestApp, startJob } from "./test-app.ts";
import { countTurns } from "../support/count-turns.ts";

const failed = {
  type: "result",
  outcome: "Failed",
  error: { code: "model_invalid", message: "No model" },
} as const;
const eventStream = { accept: "text/event-stream" };

async function startLog(t: TestContext, ...lines: string[]) {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  for (const line of lines) await worker.report(logEvent(line));
  return { app, worker, path: `GET /v1/jobs/${id}/logs` };
}

/** Lets a mocked clock run until a promise has resolved. */
async function runClock<T>(t: TestContext, promise: Promise<T>, mostSeconds: number): Promise<T> {
  const state = { isOver: false };
  void promise.then(() => (state.isOver = true));
  for (let seconds = 0; seconds < mostSeconds; seconds += 1) {
    t.mock.timers.tick(1000);
    for (let i = 0; i < 20 && !state.isOver; i++) await new Promise(setImmediate);
  }
  assert.ok(state.isOver, `over within ${mostSeconds} s`);
  return promise;
}

for (const [name, { isRevoked, backMs }] of Object.entries({
  revoked: { isRevoked: true, backMs: 0 },
  "revoked and the clock is set back": { isRevoked: true, backMs: 3_600_000 },
  expired: { isRevoked: false, backMs: 0 },
})) {
  test(`a stream ends within five seconds after its token is ${name}`, async (t) => {
    const { app, path, worker } = await startLog(t, "one");
    const body = { name: "reader", scopes: ["jobs:read"], expiresInDays: 1 };
    const answer = await app.ask("POST /v1/tokens", { body });
    const { token, id } = (await answer.json()) as { token: string; id: string };
    t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
    const reader = (await app.ask(path, { token, headers: eventStream })).body?.getReader();
    await reader?.read();
    const next = reader?.read();
    const { now } = Date;
    t.mock.method(Date, "now", () => now() - backMs);
    if (isRevoked) await app.ask(`DELETE /v1/tokens/${id}`);
    else app.advance(86_400_000);
    assert.equal((await runClock(t, Promise.resolve(next), 5))?.done, true);
    const readPage = t.mock.method(app.records.logs, "readPage");
    await worker.report(logEvent("two"));
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.equal(readPage.mock.callCount(), 0, "nothing reads for a stream that has ended");
    assert.equal((await app.ask(path, { token })).status, 401);
  });
}

for (const [name, isWaiting] of Object.entries({
  "between two lines": false,
  "while it waits": true,
})) {
  test(`a reader that goes away ${name} costs nothing any more`, async (t) => {
    const { app, path, worker } = await startLog(t, "one");
    const reader = (await app.ask(path, { headers: eventStream })).body?.getReader();
    await reader?.read();
    const waiting = isWaiting ? reader?.read() : undefined;
    await reader?.cancel();
    if (isWaiting) assert.equal((await waiting)?.done, true);
    const readPage = t.mock.method(app.records.logs, "readPage");
    await worker.report(logEvent("two"));
    const again = await app.ask(`${path}?follow=false`);
    assert.match(await again.text(), /two/);
    assert.equal(readPage.mock.callCount(), 2);
  });
}

test("lines are read once for all who follow a log", async (t) => {
  const { app, path, worker } = await startLog(t, "one");
  const readers = await Promise.all(
    Array.from({ length: 50 }, async () => (await app.ask(path)).body?.getReader()),
  );
  const readAll = async () => {
    const pieces = await Promise.all(readers.map(async (reader) => reader?.read()));
    return new Set(pieces.map((piece) => new TextDecoder().decode(piece?.value)));
  };
  assert.deepEqual([...(await readAll())], ["one\n"]);
  const readPage = t.mock.method(app.records.logs, "readPage");
  const next = readAll();
  await worker.report(logEvent("two"));
  assert.deepEqual([...(await next)], ["two\n"]);
  assert.ok(readPage.mock.callCount() <= 3, `${readPage.mock.callCount()} reads`);
  await Promise.all(readers.map(async (reader) => reader?.cancel()));
});

test("streams of one token share the check of their access", async (t) => {
  const { app, path } = await startLog(t, "one");
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const readers = await Promise.all(
    Array.from({ length: 20 }, async () => (await app.ask(path)).body?.getReader()),
  );
  await Promise.all(readers.map(async (reader) => reader?.read()));
  const find = t.mock.method(app.records.tokens, "findByHash");
  for (const checks of [1, 2]) {
    t.mock.timers.tick(limits.accessCheckSeconds * 1000);
    assert.equal(find.mock.callCount(), checks);
  }
  await Promise.all(readers.map(async (reader) => reader?.cancel()));
});

test("a page of a log is bounded in bytes, and no line is lost", async (t) => {
  const lines = Array.from({ length: 40 }, (_, i) => `${i}`.padEnd(60_000, "x"));
  const { app, path, worker } = await startLog(t, ...lines, "y".repeat(65_536));
  await worker.report(failed);
  const reader = (await app.ask(path)).body?.getReader();
  const sizes: number[] = [];
  for (;;) {
    const { done, value } = (await reader?.read()) ?? {};
    if (done !== false) break;
    sizes.push(value?.length ?? 0);
  }
  assert.ok(Math.max(...sizes) <= limits.logPageBytes + 65_536, String(sizes));
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    40 * 60_001 + 65_537,
  );
});

test("proxies are asked to pass each line on", async (t) => {
  const { app, path, worker } = await startLog(t);
  await worker.report(failed);
  const { headers } = await app.ask(path, { headers: eventStream });
  assert.equal(headers.get("x-accel-buffering"), "no");
});

for (const lines of [[], ["one", "two"]]) {
  test(`an event source with the whole log of ${lines.length} lines is asked to stop`, async (t) => {
    const { app, path, worker } = await startLog(t, ...lines);
    await worker.report(failed);
    const text = await (await app.ask(path, { headers: eventStream })).text();
    const [, last = ""] = /^id: (\d+)\nevent: end$/m.exec(text) ?? [];
    const again = await app.ask(path, { headers: { ...eventStream, "last-event-id": last } });
    assert.equal(again.status, 204);
    assert.equal(await again.text(), "");
  });
}

test("a reader who is as fast as the records lets others go on between pages", async (t) => {
  const { app, path, worker } = await startLog(t);
  const pages = 20;
  const line = logEvent("x".repeat(60_000));
  for (let i = 0; i < pages; i++) await worker.report(line, line);
  const answer = await app.ask(`${path}?follow=false`);
  let bytes = 0;
  const turns = await countTurns(async () => {
    for await (const piece of answer.body ?? []) bytes += piece.length;
  });
  assert.equal(bytes, pages * 2 * 60_001);
  assert.ok(turns >= pages, `${turns} turns of the event loop`);
});
