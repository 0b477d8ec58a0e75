import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { z } from "zod";
import { batch as batchSchema, batchPage } from "../../src/contract/batches/batch.ts";
import { jobSummaryPage } from "../../src/contract/jobs/job-lists.ts";
import { beginTestWorker, makeTestApp, startJob, type TestApp } from "./test-app.ts";

const shown = z.object({ id: z.string(), status: z.string().default("deleted") });

interface ReceivedEvent {
  readonly seq: string;
  readonly event: string | undefined;
  readonly id: string;
  readonly status: string;
}

function parseEvents(text: string): ReceivedEvent[] {
  return text.split("\n\n").flatMap((block) => {
    const fields = new Map(
      block.split("\n").map((line) => [line.split(": ")[0], line.slice(line.indexOf(": ") + 2)]),
    );
    const data = fields.get("data");
    if (data === undefined) return [];
    const { id, status } = shown.parse(JSON.parse(data));
    return [{ seq: fields.get("id") ?? "", event: fields.get("event"), id, status }];
  });
}

/** Reads a stream, one event after the other, until the test ends. */
async function followEvents(t: TestContext, app: TestApp, query = "", lastEventId?: string) {
  const headers = { ...(lastEventId !== undefined && { "last-event-id": lastEventId }) };
  const answer = await app.ask(`GET /v1/events${query}`, { headers });
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  t.after(() => reader?.cancel());
  const { value: first = "" } = (await reader?.read()) ?? {};
  const waiting: ReceivedEvent[] = [];
  return {
    position: /^id: (\d+)\n\n$/.exec(first)?.[1],
    async next() {
      while (waiting.length === 0) {
        const { value, done } = (await reader?.read()) ?? { done: true };
        assert.equal(done, false);
        waiting.push(...parseEvents(value));
      }
      return waiting.shift();
    },
  };
}

async function readPresent(app: TestApp, query: string): Promise<ReceivedEvent[]> {
  return parseEvents(await (await app.ask(`GET /v1/events?follow=false&${query}`)).text());
}

test("changes of jobs are sent as they happen", async (t) => {
  const app = await makeTestApp(t);
  const events = await followEvents(t, app);
  const { id } = await startJob(app);
  const { seq: _, ...created } = (await events.next()) ?? { seq: "" };
  assert.deepEqual(created, { event: "job", id, status: "Pending" });
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  assert.equal((await events.next())?.status, "Sharding");
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  assert.equal((await events.next())?.status, "Cancelling");
});

test("an event has the row that lists have, with its figures and labels", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app, { labels: { team: "vision" } });
  const models = [{ source: "https://models.example/detector.onnx" }];
  await app.ask("POST /v1/batches", { body: { models, targets: ["cpu"] } });
  const worker = await beginTestWorker(app, id);
  const size = { originalBytes: 100, resultBytes: 40, ratio: 0.4, predicted: false };
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    { type: "telemetry", telemetry: { size } },
    { type: "result", outcome: "Completed" },
  );
  const text = await (await app.ask("GET /v1/events?follow=false&after=0")).text();
  const sent = (event: string) =>
    [...text.matchAll(new RegExp(`^event: ${event}\ndata: (.*)$`, "gm"))].map(([, data = ""]) =>
      JSON.parse(data),
    );
  const listed = async (path: string) => (await app.ask(`GET /v1/${path}`)).json();
  const { jobs } = jobSummaryPage.parse(await listed("jobs/summaries"));
  const { batches } = batchPage.parse(await listed("batches"));
  assert.deepEqual(sent("job").toSorted(byId), jobs.toSorted(byId));
  assert.deepEqual(sent("batch"), batches);
  const ended = jobs.find((job) => job.id === id);
  assert.deepEqual([ended?.figures.sizeRatio, ended?.labels], [0.4, { team: "vision" }]);
});

const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1);

test("a batch is sent with its jobs, and a filter leaves out the others", async (t) => {
  const app = await makeTestApp(t);
  await startJob(app);
  const model = { source: "https://models.example/detector.onnx" };
  const body = { models: [model], targets: ["cpu", "cpu-int8"], labels: { team: "vision" } };
  const batch = batchSchema.parse(await (await app.ask("POST /v1/batches", { body })).json());
  const ids = [batch.id, ...batch.jobs.map(({ id }) => id)].toSorted();
  for (const filter of [`batch=${batch.id}`, "label=team=vision", "label=team"]) {
    const sent = await readPresent(app, `after=0&${filter}`);
    assert.deepEqual(sent.map(({ id }) => id).toSorted(), ids, filter);
  }
  assert.deepEqual(await readPresent(app, "after=0&label=team=audio"), []);
  assert.equal((await readPresent(app, "after=0")).length, 4);
});

test("a reader that comes back gets what changed meanwhile, once and in its last state", async (t) => {
  const app = await makeTestApp(t);
  const before = await followEvents(t, app);
  const [first, second] = [await startJob(app), await startJob(app)];
  const last = (await before.next())?.seq;
  await app.ask(`POST /v1/jobs/cancel/${second.id}`);
  const again = await followEvents(t, app, "", last);
  assert.deepEqual((await again.next())?.id, second.id);
  const third = await startJob(app);
  assert.equal((await again.next())?.id, third.id);
  const all = await readPresent(app, `after=${before.position}`);
  assert.deepEqual(
    all.map(({ id, status }) => [id, status]),
    [
      [first.id, "Pending"],
      [second.id, "Cancelled"],
      [third.id, "Pending"],
    ],
  );
});

test("a number that these records never gave begins with the present", async (t) => {
  const app = await makeTestApp(t);
  await startJob(app);
  const events = await followEvents(t, app, "?after=999999");
  const next = await startJob(app);
  assert.equal((await events.next())?.id, next.id);
});

test("more changes than a page has are all sent", async (t) => {
  const app = await makeTestApp(t);
  const models = Array.from({ length: 150 }, (_, i) => {
    return { source: `https://models.example/${i}.onnx` };
  });
  await app.ask("POST /v1/batches", { body: { models, targets: ["cpu"] } });
  const sent = await readPresent(app, "after=0");
  assert.equal(new Set(sent.map(({ id }) => id)).size, 151);
  assert.equal(sent.length, 151);
});

async function deleteCancelled(app: TestApp, path: string, id: string): Promise<void> {
  await app.ask(`POST /v1/${path}/cancel/${id}`);
  assert.equal((await app.ask(`DELETE /v1/${path}/${id}`)).status, 204);
}

test("the deletion of a job is sent, also to readers that come back", async (t) => {
  const app = await makeTestApp(t);
  const events = await followEvents(t, app);
  const { id } = await startJob(app);
  const { seq } = (await events.next()) ?? {};
  await deleteCancelled(app, "jobs", id);
  let last = await events.next();
  while (last?.event === "job") last = await events.next();
  assert.deepEqual(last && [last.event, last.id], ["job.deleted", id]);
  const again = await followEvents(t, app, "", seq);
  assert.deepEqual(await again.next(), last);
});

test("the deletion of a batch is sent with those of its jobs, where they fit the filter", async (t) => {
  const app = await makeTestApp(t);
  const models = [{ source: "https://models.example/detector.onnx" }];
  const body = { models, targets: ["cpu"], labels: { team: "vision" } };
  const batch = batchSchema.parse(await (await app.ask("POST /v1/batches", { body })).json());
  const [job] = batch.jobs;
  await deleteCancelled(app, "batches", batch.id);
  const deleted = [
    ["job.deleted", job?.id],
    ["batch.deleted", batch.id],
  ];
  for (const filter of ["", `batch=${batch.id}`, "label=team=vision", "label=team"]) {
    const sent = await readPresent(app, `after=0&${filter}`);
    assert.deepEqual(
      sent.map(({ event, id }) => [event, id]),
      deleted,
      filter,
    );
  }
  for (const filter of ["label=team=audio", "label=env", `batch=batch-${"0".repeat(26)}`]) {
    assert.deepEqual(await readPresent(app, `after=0&${filter}`), [], filter);
  }
});
