import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { maxArtifacts } from "../../src/contract/jobs/artifact.ts";
import { job } from "../../src/contract/jobs/job.ts";
import { maxLogLineBytes } from "../../src/contract/jobs/log.ts";
import {
  jobPage,
  jobSummaryPage,
  type JobPage,
  type JobSummaryPage,
} from "../../src/contract/jobs/job-lists.ts";
import { maxReportedOutputs } from "../../src/contract/jobs/telemetry.ts";
import type { UnnumberedEvent } from "../../src/contract/worker-protocol/messages.ts";
import { limits } from "../../src/contract/limits.ts";
import { hasHiddenCharacters } from "../../src/contract/text/hidden-characters.ts";
import { makeNewJob } from "../records/new-jobs.ts";
import { beginTestWorker, logEvent, makeTestApp, problemIn, startJob } from "./test-app.ts";

type TestAppOptions = Parameters<typeof makeTestApp>[1];

async function startWork(t: TestContext, options: TestAppOptions = {}) {
  const app = await makeTestApp(t, options);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  const readJob = async () => job.parse(await (await app.ask(`GET /v1/jobs/${id}`)).json());
  /** What the worker would report first. */
  const send = (...events: readonly UnnumberedEvent[]) => {
    const numbered = events.map((event, i) => ({
      ...event,
      seq: i + 1,
      at: "2026-01-01T00:00:00Z",
    }));
    const body = { events: numbered };
    return app.ask(`POST /worker/v1/jobs/${id}/events`, { token: worker.secret, body });
  };
  return { app, id, worker, readJob, send };
}

const forged = "name\n2026 forged\u001b[2J\u202e\u0000";

function accuracyEvent(...names: readonly string[]): UnnumberedEvent {
  const figures = { sqnrDb: 40, cosine: 1, maxAbsoluteError: 0, top1Agreement: null };
  const outputs = names.map((name) => ({ name, ...figures }));
  const accuracy = { level: "outputs", data: "caller", samples: 1, sqnrDb: 40, cosine: 1 } as const;
  return { type: "telemetry", telemetry: { accuracy: { ...accuracy, outputs } } };
}

test("names of outputs are cut, however long a model's are", async (t) => {
  const { worker, readJob } = await startWork(t);
  const names = Array.from({ length: maxReportedOutputs }, (_, i) => `${i}`.padEnd(3_500, "x"));
  await worker.report({ type: "status", status: "Sharding" }, accuracyEvent(...names));
  const read = await readJob();
  const cut = read.telemetry.accuracy?.outputs.map(({ name }) => name) ?? [];
  assert.deepEqual(
    cut,
    names.map((name) => `${name.slice(0, 199)}…`),
  );
  assert.ok(JSON.stringify(read).length < 32_768);
});

test("no text of a worker is more than one visible line", async (t) => {
  const { app, id, worker, readJob } = await startWork(t);
  await worker.report(
    { type: "status", status: "Sharding" },
    logEvent(forged),
    accuracyEvent(forged),
    {
      type: "telemetry",
      telemetry: {
        progress: { fraction: 0.5, message: forged },
        device: { executionProvider: forged, name: forged, threads: 1, runtime: forged },
        warnings: [{ code: forged, message: forged }],
      },
    },
    { type: "result", outcome: "Failed", error: { code: "model_invalid", message: forged } },
  );
  const shown = "name 2026 forged\u{fffd}[2J\u{fffd}\u{fffd}";
  const { telemetry, error } = await readJob();
  const { executionProvider, name, runtime } = telemetry.device ?? {};
  assert.deepEqual(
    [
      telemetry.accuracy?.outputs[0]?.name,
      telemetry.progress.message,
      telemetry.warnings[0]?.code,
      telemetry.warnings[0]?.message,
      executionProvider,
      name,
      runtime,
      error?.message,
    ],
    Array.from({ length: 8 }, () => shown),
  );
  const log = await (await app.ask(`GET /v1/jobs/${id}/logs?follow=false`)).text();
  assert.equal(log, `${shown}\n`);
});

test("what a crashed worker printed is one visible line for each that it printed", async (t) => {
  const { app, id } = await startWork(t);
  const lines = [{ stream: "stderr", text: `${forged}${"y".repeat(maxLogLineBytes)}` }] as const;
  await app.records.attempts.end(id, 1, { error: null, lines: [...lines] });
  const log = await app.records.logs.readPage(id, 0);
  assert.ok(log.every(({ text }) => !hasHiddenCharacters(text)));
  assert.ok(log.every(({ text }) => Buffer.byteLength(text) <= maxLogLineBytes));
  assert.equal(log[0]?.text, "name");
});

test("a log line beyond the limit is refused, in bytes", async (t) => {
  const { send } = await startWork(t);
  for (const text of ["x".repeat(maxLogLineBytes + 1), "é".repeat(maxLogLineBytes / 2 + 1)]) {
    const problem = await problemIn(await send(logEvent(text)));
    assert.deepEqual([problem.status, problem.errors?.[0]?.pointer], [422, "/events/0/text"]);
  }
  assert.equal((await send(logEvent("x".repeat(maxLogLineBytes)))).status, 200);
});

test("figures outside their ranges are refused", async (t) => {
  const { send } = await startWork(t);
  const size = { originalBytes: 1, resultBytes: 1, predicted: false };
  for (const telemetry of [
    { size: { ...size, ratio: 1e300 } },
    { size: { ...size, ratio: -1 } },
    { stageSeconds: { fetch: 1e300 } },
    { latency: { ratio: 1, original: { p50Ms: -1, runs: 1 }, result: { p50Ms: 1, runs: 1 } } },
  ]) {
    assert.equal((await send({ type: "telemetry", telemetry })).status, 422);
  }
});

for (const bytes of [4, 4e12]) {
  test(`a file is not recorded with ${bytes} bytes where its blob has others`, async (t) => {
    const { app, id, worker, send } = await startWork(t);
    const blob = await worker.store("HTTP/1.1 200 OK\r\n\r\nthe rest of a blob");
    const reported = { ...blob, bytes };
    for (const event of [
      { type: "artifact", artifact: { name: "a.bin", kind: "weights", ...reported } },
      { type: "outline", outline: reported },
      { type: "share", share: { index: 0, ...reported } },
    ] as const) {
      const problem = await problemIn(await send(event));
      assert.equal(problem.code, "validation_failed");
      assert.match(problem.errors?.[0]?.message ?? "", /has 37 bytes, and .* were reported/);
    }
    assert.equal(await app.records.jobBlobs.mayHave(id, blob), true);
    assert.equal(await app.records.jobBlobs.mayHave(id, reported), false, "in a pod's log");
  });
}

test("a job has so many files and no more", async (t) => {
  const { worker, readJob } = await startWork(t);
  const blob = await worker.store("the same for all");
  await worker.report({ type: "status", status: "Sharding" });
  const names = Array.from({ length: maxArtifacts + 1 }, (_, i) => `${i}`.padEnd(200, "x"));
  const events = names.map((name): UnnumberedEvent => {
    return { type: "artifact", artifact: { name, kind: "weights", ...blob } };
  });
  await worker.report(...events.slice(0, 500));
  await worker.report(...events.slice(500, 1000));
  await worker.report(...events.slice(1000, maxArtifacts));
  const full = await readJob();
  assert.deepEqual([full.status, full.artifacts.length], ["Sharding", maxArtifacts]);
  await worker.report(...events.slice(maxArtifacts));
  const { status, error, artifacts } = await readJob();
  assert.deepEqual(
    [status, error?.code, artifacts.length],
    ["Failed", "worker_crashed", maxArtifacts],
  );
  assert.equal((await worker.report(logEvent("late"))).cancelled, true);
});

test("requests of one attempt are counted, with what they bring", async (t) => {
  const { app, id, worker, send } = await startWork(t, { workerRequestsPerMinute: 600 });
  const other = await startJob(app);
  const { secret } = await beginTestWorker(app, other.id);
  const heartbeat = (size: number) => {
    const headers = { "content-length": String(size) };
    const question = { token: worker.secret, body: { events: [] }, headers };
    return app.ask(`POST /worker/v1/jobs/${id}/events`, question);
  };
  assert.equal((await heartbeat(100)).status, 200);
  assert.equal((await heartbeat(limits.workerBodyBytes)).status, 200, "9 requests");
  for (let i = 0; i < 590; i++) assert.equal((await heartbeat(100)).status, 200);
  const refused = await heartbeat(100);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal((await problemIn(refused)).code, "too_many_requests");
  assert.equal((await send(logEvent("more"))).status, 429);
  assert.equal((await app.ask(`GET /worker/v1/jobs/${id}`, { token: worker.secret })).status, 429);
  for (let i = 0; i < 100; i++) assert.equal((await heartbeat(100)).status, 429);
  const countLogged = () => app.logged.filter((line) => line.includes('"status":429')).length;
  assert.equal(countLogged(), 60, "of 103 refusals");
  assert.equal((await app.ask(`GET /worker/v1/jobs/${other.id}`, { token: secret })).status, 200);
  app.advance(1000);
  assert.equal((await heartbeat(100)).status, 200);
});

test("each file that a worker reports counts as a request, since it is looked for", async (t) => {
  const { worker, send } = await startWork(t, { workerRequestsPerMinute: 300 });
  const blob = await worker.store("the same for all");
  const report = () =>
    send(
      ...Array.from({ length: 150 }, (_, i): UnnumberedEvent => {
        return { type: "artifact", artifact: { name: `${i}`, kind: "weights", ...blob } };
      }),
    );
  assert.equal((await report()).status, 200);
  assert.equal((await report()).status, 429);
});

test("what a worker sends at once is read before others wait for it", async (t) => {
  const { app, id, worker, send } = await startWork(t);
  for (const length of [1_300_000, limits.workerBodyBytes / 3]) {
    assert.equal((await send(logEvent("\u202e".repeat(length)))).status, 413);
  }
  for (const path of ["sources", "source", `blobs/${"a".repeat(64)}/upload`]) {
    const question = { token: worker.secret, body: { source: "x".repeat(limits.workerBodyBytes) } };
    const answer = await app.ask(`POST /worker/v1/jobs/${id}/${path}`, question);
    assert.equal(answer.status, 413, path);
  }
  const longest = logEvent("\\".repeat(maxLogLineBytes));
  assert.equal((await send(longest)).status, 200, "the largest line");
});

for (const list of ["jobs", "jobs/summaries"]) {
  test(`a page of GET /${list} ends where its jobs are large, and the next one goes on`, async (t) => {
    const app = await makeTestApp(t);
    const labels = { large: "x".repeat(300_000) };
    const made: string[] = [];
    for (let i = 0; i < 30; i++) {
      app.advance(1);
      const { id } = await app.records.jobs.create("default", makeNewJob({ labels }));
      made.unshift(id);
    }
    for (const filter of ["", "&status=Pending&status=Failed&model=detector.onnx"]) {
      const found: string[] = [];
      let cursor: string | null = "";
      for (let pages = 0; cursor !== null; pages++) {
        assert.ok(pages < 5);
        const from: string = cursor === "" ? "" : `&cursor=${cursor}`;
        const text = await (await app.ask(`GET /v1/${list}?limit=200${filter}${from}`)).text();
        assert.ok(text.length <= limits.pageBytes + 1000, `${text.length} bytes`);
        const page: JobPage | JobSummaryPage = (list === "jobs" ? jobPage : jobSummaryPage).parse(
          JSON.parse(text),
        );
        found.push(...page.jobs.map(({ id }) => id));
        cursor = page.nextCursor;
      }
      assert.deepEqual(found, made);
    }
  });
}

test("a page has one job, however large", async (t) => {
  const app = await makeTestApp(t);
  const labels = { large: "x".repeat(900_000) };
  for (let i = 0; i < 2; i++) await app.records.jobs.create("default", makeNewJob({ labels }));
  const page = jobPage.parse(await (await app.ask("GET /v1/jobs?limit=1")).json());
  assert.equal(page.jobs.length, 1);
  assert.notEqual(page.nextCursor, null);
});
