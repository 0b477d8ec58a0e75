import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { job as jobSchema } from "../../src/contract/jobs/job.ts";
import { realModel } from "../support/real-models.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { endMs, type ReceivedSpan, startCollector, startMs } from "./collector.ts";

const callerSpan = "b7ad6b7169203331";

interface Submission {
  readonly traceId: string;
  readonly sampled: boolean;
  readonly body: object;
}

async function startJob(service: RunningService, { traceId, sampled, body }: Submission) {
  const headers = {
    authorization: `Bearer ${service.token}`,
    "content-type": "application/json",
    traceparent: `00-${traceId}-${callerSpan}-0${sampled ? 1 : 0}`,
  };
  const url = `${service.baseUrl}/compress`;
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return jobSchema.parse(await answer.json());
}

async function untilEnded({ client }: RunningService, ids: readonly string[]): Promise<void> {
  for (const id of ids) for await (const _ of client.followLogs(id));
}

function listChildren(spans: readonly ReceivedSpan[], { spanId }: ReceivedSpan): ReceivedSpan[] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === spanId)
    .toSorted((one, other) => endMs(one) - endMs(other));
}

test("traces lead from requests to the stages of workers", async (t) => {
  const collector = await startCollector(t);
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    MOS_WORKERS: "1",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test%20bed",
  };
  const service = await startRunningService(t, { environment });
  const { client } = service;
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const recipe = { evaluation: { level: "weights" } };
  const body = { model: { source }, target: "cpu", recipe };
  const [sampled, unsampled] = ["1".repeat(32), "2".repeat(32)];
  const { id } = await startJob(service, { traceId: sampled, sampled: true, body });
  const left = await startJob(service, { traceId: unsampled, sampled: false, body });
  await client.call("cancelJob", { params: { id: left.id } });
  const batch = await client.call("submitBatch", {
    body: { models: [{ source }], targets: ["cpu", "cpu-int8"] },
  });
  await client.call("cancelBatch", { params: { id: batch.id } });
  await untilEnded(service, [id, left.id, ...batch.jobs.map((each) => each.id)]);
  const retried = await client.call("retryJob", { params: { id } });
  const finished = await client.call("getJob", { params: { id } });
  await client.call("cancelJob", { params: { id: retried.id } });
  await untilEnded(service, [retried.id]);
  service.process.kill("SIGTERM");
  assert.deepEqual(await once(service.process, "exit"), [0, null]);
  const { spans } = collector;
  const oneNamed = (name: string, { job, trace }: { job?: string; trace?: string }) => {
    const found = spans.filter(
      (span) =>
        span.name === name &&
        (job === undefined || span.attributes["mos.job.id"] === job) &&
        (trace === undefined || span.traceId === trace),
    );
    const [only] = found;
    assert.ok(only !== undefined && found.length === 1, `${name}: ${found.length}`);
    return only;
  };

  await t.test("a job's trace goes on with its caller's", () => {
    const request = oneNamed("POST /v1/compress", { trace: sampled });
    assert.equal(request.parentSpanId, callerSpan);
    assert.equal(request.kind, 2);
    const { attributes } = request;
    assert.equal(attributes["http.request.method"], "POST");
    assert.equal(attributes["http.route"], "/v1/compress");
    assert.equal(attributes["http.response.status_code"], 202);
    assert.equal(attributes["mos.project"], "default");
    assert.match(String(attributes["mos.request.id"]), /^[0-9a-f-]{36}$/);
    assert.equal(request.resource["service.name"], "model-optimization-service");
    assert.equal(request.resource["deployment.environment.name"], "test bed");

    const job = oneNamed("compress job", { job: id });
    assert.deepEqual([job.traceId, job.parentSpanId], [sampled, request.spanId]);
    assert.equal(job.attributes["mos.target"], "cpu");
    assert.equal(job.attributes["mos.status"], "Completed");
    assert.equal(job.attributes["mos.model.sha256"], finished.model.actualSha256);
    assert.deepEqual(
      job.events.map(({ name }) => name),
      ["Pending", "Sharding", "Optimizing", "Completed"],
    );
    assert.equal(startMs(job), Date.parse(finished.createdAt));
    assert.equal(endMs(job), Date.parse(finished.finishedAt ?? ""));
  });

  await t.test("its worker's stages are where the worker measured them", () => {
    const job = oneNamed("compress job", { job: id });
    const [wait, attempt] = listChildren(spans, job);
    assert.ok(wait && attempt);
    assert.deepEqual([wait.name, attempt.name], ["wait", "attempt"]);
    assert.ok(startMs(attempt) >= endMs(wait));
    const stages = listChildren(spans, attempt);
    const names = stages.map(({ name }) => name);
    assert.deepEqual(names, ["fetch", "shard", "optimize", "publish", "evaluate", "publish"]);
    for (const [index, stage] of stages.entries()) {
      const before = stages[index - 1];
      assert.ok(startMs(stage) >= startMs(before ?? attempt));
      assert.ok(endMs(stage) <= endMs(attempt));
    }
    const evaluation = stages.find(({ name }) => name === "evaluate");
    assert.ok(evaluation);
    const measured = (finished.telemetry.stageSeconds?.evaluate ?? 0) * 1000;
    assert.ok(Math.abs(endMs(evaluation) - startMs(evaluation) - measured) <= 1);
  });

  await t.test("what a caller does not want recorded is not", () => {
    assert.deepEqual(
      spans.filter(({ traceId }) => traceId === unsampled),
      [],
    );
  });

  await t.test("the jobs of a batch are in the trace of its request", () => {
    const request = oneNamed("POST /v1/batches", {});
    for (const each of batch.jobs) {
      const job = oneNamed("compress job", { job: each.id });
      assert.deepEqual([job.traceId, job.parentSpanId], [request.traceId, request.spanId]);
      assert.equal(job.attributes["mos.batch.id"], batch.id);
    }
  });

  await t.test("a retry has a link to what it repeats", () => {
    const request = oneNamed("POST /v1/jobs/:id/retry", {});
    const former = oneNamed("POST /v1/compress", { trace: sampled });
    assert.deepEqual(
      request.links.map(({ traceId, spanId }) => [traceId, spanId]),
      [[former.traceId, former.spanId]],
    );
    assert.notEqual(request.traceId, sampled);
    assert.equal(oneNamed("compress job", { job: retried.id }).parentSpanId, request.spanId);
  });

  await t.test("no span names a source or a token", () => {
    const text = JSON.stringify(spans);
    assert.ok(!text.includes("upload:"));
    assert.ok(!text.includes(service.token));
  });
});
