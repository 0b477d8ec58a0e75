import assert from "node:assert/strict";
import test from "node:test";
import { logLine } from "../../src/contract/jobs/log.ts";
import {
  logEvent,
  makeTestApp,
  problemIn,
  startJob,
  type TestApp,
  beginTestWorker,
} from "./test-app.ts";

const failed = {
  type: "result",
  outcome: "Failed",
  error: { code: "model_invalid", message: "No model" },
} as const;

async function jobWithLines(app: TestApp, ...lines: string[]) {
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report(
    { type: "status", status: "Sharding" },
    ...lines.map((line) => logEvent(line)),
  );
  return { id, worker, path: `GET /v1/jobs/${id}/logs` };
}

function createReader(answer: Response) {
  assert.ok(answer.body);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  return { read: async () => (await reader.read()).value, cancel: async () => reader.cancel() };
}

test("the log of a job that has ended comes whole, as plain text", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app, "one", "two");
  await worker.report(failed);
  const answer = await app.ask(path);
  assert.equal(answer.headers.get("content-type"), "text/plain; charset=utf-8");
  assert.equal(await answer.text(), "one\ntwo\n");
});

test("a log that is followed comes line by line and ends with the job", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app, "one");
  const reader = createReader(await app.ask(path));
  assert.equal(await reader.read(), "one\n");
  await worker.report(logEvent("two"));
  assert.equal(await reader.read(), "two\n");
  await worker.report(logEvent("three"), failed);
  assert.equal(await reader.read(), "three\n");
  assert.equal(await reader.read(), undefined);
});

test("lines before a number come as a page, oldest first, also of a running job", async (t) => {
  const app = await makeTestApp(t);
  const { path } = await jobWithLines(app, "one", "two", "three", "four", "five");
  const read = async (query: string) => (await app.ask(`${path}?${query}`)).text();
  assert.equal(await read("before=1000&limit=2"), "four\nfive\n");
  assert.equal(await read("before=4&limit=2"), "two\nthree\n");
  assert.equal(await read("before=2&limit=2"), "one\n");
  assert.equal(await read("before=5&after=3"), "four\n");
  assert.equal(await read("before=1"), "");
  const headers = { accept: "application/x-ndjson" };
  const answer = await app.ask(`${path}?before=3&limit=1`, { headers });
  const line = logLine.parse(await answer.json());
  assert.deepEqual([line.seq, line.text], [2, "two"]);
});

test("a page of long lines has as many as its bytes allow, and at least one", async (t) => {
  const app = await makeTestApp(t);
  const { path } = await jobWithLines(app, ..."abcdef".split("").map((a) => a.repeat(30_000)));
  const page = await (await app.ask(`${path}?before=7`)).text();
  assert.deepEqual(
    page
      .trimEnd()
      .split("\n")
      .map((line) => line[0]),
    ["c", "d", "e", "f"],
  );
});

test("lines before a number are not an event stream", async (t) => {
  const app = await makeTestApp(t);
  const { path } = await jobWithLines(app, "one");
  const headers = { accept: "text/event-stream" };
  const { code } = await problemIn(await app.ask(`${path}?before=2`, { headers }));
  assert.equal(code, "not_acceptable");
});

test("a log that is not followed ends with the lines there are", async (t) => {
  const app = await makeTestApp(t);
  const { path } = await jobWithLines(app, "one");
  assert.equal(await (await app.ask(`${path}?follow=false`)).text(), "one\n");
});

test("an event stream numbers its lines and ends with the job's status", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app, "one");
  await worker.report(failed);
  const answer = await app.ask(path, { headers: { accept: "text/event-stream" } });
  assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
  const line = { seq: 1, at: "2026-01-01T00:00:00.000Z", stream: "stdout", text: "one" };
  const log = `id: 1\nevent: log\ndata: ${JSON.stringify(line)}\n\n`;
  assert.equal(await answer.text(), `${log}id: 1\nevent: end\ndata: {"status":"Failed"}\n\n`);
});

test("an event stream resumes behind Last-Event-ID", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app, "one", "two", "three");
  await worker.report(failed);
  const headers = { accept: "text/event-stream", "last-event-id": "2" };
  const text = await (await app.ask(path, { headers })).text();
  assert.deepEqual(text.match(/^id: .*$/gm), ["id: 3", "id: 3"]);
});

test("NDJSON gives a document a line, resumed behind a number", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app, "one", "two");
  await worker.report(failed);
  const answer = await app.ask(`${path}?after=1`, { headers: { accept: "application/x-ndjson" } });
  assert.equal(answer.headers.get("content-type"), "application/x-ndjson");
  const text = await answer.text();
  assert.deepEqual(JSON.parse(text), {
    seq: 2,
    at: "2026-01-01T00:00:00.000Z",
    stream: "stdout",
    text: "two",
  });
});

test("a format that there is not is refused", async (t) => {
  const app = await makeTestApp(t);
  const { path } = await jobWithLines(app);
  assert.equal(
    (await problemIn(await app.ask(path, { headers: { accept: "image/png" } }))).code,
    "not_acceptable",
  );
});

test("a quiet event stream is kept open with pings", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app);
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const reader = createReader(await app.ask(path, { headers: { accept: "text/event-stream" } }));
  const first = reader.read();
  await new Promise(setImmediate);
  for (let seconds = 0; seconds < 16; seconds += 4) {
    t.mock.timers.tick(4000);
    await new Promise(setImmediate);
  }
  assert.equal(await first, ": ping\n\n");
  const second = reader.read();
  await worker.report(logEvent("one"));
  assert.match((await second) ?? "", /^id: 1\n/);
  await reader.cancel();
});

test("a reader misses no line and sees none twice while lines come as it reads", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app);
  const answers = await Promise.all(Array.from({ length: 3 }, async () => app.ask(path)));
  const texts = Promise.all(answers.map(async (answer) => answer.text()));
  let seq = 1;
  for (let round = 0; round < 20; round++) {
    const events = Array.from({ length: 1 + ((round * 337) % 700) }, () => logEvent(String(seq++)));
    await worker.report(...events);
  }
  await worker.report(failed);
  const whole = Array.from({ length: seq - 1 }, (_, i) => `${i + 1}\n`).join("");
  for (const text of await texts) assert.equal(text, whole);
});

test("nothing is read from records before the reader asks for it", async (t) => {
  const app = await makeTestApp(t);
  const { worker, path } = await jobWithLines(app);
  const read = t.mock.method(app.records.logs, "readPage");
  await worker.report(...Array.from({ length: 1000 }, () => logEvent("line")));
  const reader = (await app.ask(path)).body?.getReader();
  await new Promise(setImmediate);
  assert.equal(read.mock.callCount(), 0);
  await reader?.read();
  assert.equal(read.mock.callCount(), 1);
  await reader?.cancel();
});
