import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { openServiceTracing } from "../../src/service/open-service-tracing.ts";
import { settings } from "../../src/service/settings/settings.ts";
import { parseEnvironment } from "../../src/settings/parse-environment.ts";
import { makeTestApp, problemIn } from "../server/test-app.ts";
import { opensslMissing } from "../support/cluster/cluster-missing.ts";
import { createCertificate } from "../support/create-certificate.ts";
import { startCollector } from "./collector.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const about = { startedAt: "", versions: { service: "1.2.3" }, records: "sqlite" } as const;
const parts = { about, log: () => {} };
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

test("spans are sent as protobuf, with the headers that the collector wants", async (t) => {
  const collector = await startCollector(t);
  const url = `${collector.endpoint}/v1/traces`;
  const headers = { "api-key": "secret" };
  const app = await makeTestApp(t, { tracing: { url, headers, protocol: "http/protobuf" } });
  await app.ask("GET /v1/targets");
  await app.stop();
  const [sent] = collector.requests;
  assert.ok(sent);
  assert.equal(sent.request.url, "/v1/traces");
  assert.equal(sent.request.headers["content-type"], "application/x-protobuf");
  assert.equal(sent.request.headers["api-key"], "secret");
  assert.ok(sent.body.includes("GET /v1/targets"));
});

test("requests have spans by their routes, and lines of the log their traces", async (t) => {
  const collector = await startCollector(t);
  const app = await makeTestApp(t, { tracing: { url: `${collector.endpoint}/v1/traces` } });
  const answer = await app.ask("GET /v1/jobs/job-none?model=https://h/m?sig=SECRET", {
    headers: { traceparent },
  });
  await problemIn(answer);
  await app.ask("GET /healthz", { token: null });
  await app.ask("GET /v1/nothing", { headers: { traceparent: "00-not-one-00" } });
  await app.stop();
  const shown = collector.spans.map(({ name, status, attributes }) => [
    name,
    status.code,
    attributes["http.route"],
    attributes["url.path"],
    attributes["http.response.status_code"],
  ]);
  assert.deepEqual(shown, [
    ["GET /v1/jobs/:id", 0, "/v1/jobs/:id", "/v1/jobs/job-none", 404],
    ["GET", 0, undefined, "/v1/nothing", 404],
  ]);
  assert.equal(collector.spans[0]?.traceId, traceId);
  assert.ok(!JSON.stringify(collector.spans).includes("SECRET"));
  const lines = app.logged.filter((line) => line.includes("A request was answered"));
  assert.match(lines[0] ?? "", new RegExp(`"traceId":"${traceId}"`));
  assert.match(lines[1] ?? "", new RegExp(`"traceId":"${collector.spans[1]?.traceId}"`));
});

test("a collector that is away costs requests nothing: spans are dropped and counted", async (t) => {
  const tracing = { url: "http://127.0.0.1:9/v1/traces", timeoutMs: 100, maxSpans: 4 };
  const app = await makeTestApp(t, { tracing });
  const asked = Array.from({ length: 20 }, async () => app.ask("GET /v1/targets"));
  assert.deepEqual([...new Set((await Promise.all(asked)).map(({ status }) => status))], [200]);
  await app.stop();
  const metrics = await (await app.ask("GET /metrics", { token: null })).text();
  const counts = [...metrics.matchAll(/^mos_trace_spans_dropped_total\{.*\} (\d+)$/gm)];
  assert.equal(counts.length, 2);
  assert.equal(
    counts.reduce((sum, [, count]) => sum + Number(count), 0),
    20,
  );
  const warnings = app.logged.filter((line) => line.includes("Spans of traces are dropped"));
  assert.equal(warnings.length, 1);
});

test(
  "a collector is trusted by the authority of the settings",
  { skip: opensslMissing },
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "collector-"));
    t.after(() => rm(folder, { recursive: true }));
    const files = { key: join(folder, "key.pem"), certificate: join(folder, "certificate.pem") };
    await createCertificate(files);
    const collector = await startCollector(t, {
      key: await readFile(files.key, "utf8"),
      cert: await readFile(files.certificate, "utf8"),
    });
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.endpoint}/`,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_CERTIFICATE: files.certificate,
      OTEL_EXPORTER_OTLP_HEADERS: "api-key=a%20key, tenant = models",
      OTEL_SERVICE_NAME: "compression",
    };
    const { records, now } = await makeTestApp(t);
    const wanted = parseEnvironment(settings, environment);
    const tracing = await openServiceTracing(wanted, { ...parts, records, now });
    assert.ok(tracing);
    const request = new Request("https://mos.example/v1/jobs");
    tracing.startRequest(request, "id").end({ route: "/v1/jobs", status: 200 });
    await tracing[Symbol.asyncDispose]();
    const [sent] = collector.requests;
    assert.equal(sent?.request.url, "/v1/traces");
    assert.equal(sent.request.headers["api-key"], "a key");
    assert.equal(sent.request.headers["tenant"], "models");
    assert.equal(collector.spans[0]?.resource["service.name"], "compression");
  },
);

const wrong: readonly (readonly [string, string])[] = [
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "api-key"],
  ["OTEL_TRACES_SAMPLER", "jaeger_remote"],
  ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
];

for (const [name, value] of wrong) {
  test(`${name}=${value} is refused by its name`, () => {
    assert.throws(() => parseEnvironment(settings, { [name]: value }), new RegExp(name));
  });
}

test("nothing is traced without the address of a collector", async (t) => {
  const { records, now } = await makeTestApp(t);
  const traced = { ...parts, records, now };
  assert.equal(await openServiceTracing(settings.parse({}), traced), undefined);
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/nowhere.pem",
  };
  const opened = openServiceTracing(settings.parse(environment), traced);
  await assert.rejects(opened, /collector's certificate "\/nowhere\.pem" cannot be used/);
});
