import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import type { Log } from "../../src/log/json-log.ts";
import { openServiceTracing } from "../../src/service/open-service-tracing.ts";
import { settings } from "../../src/service/settings/settings.ts";
import { parseEnvironment } from "../../src/settings/parse-environment.ts";
import { createExporter, createSampler, openTracing } from "../../src/tracing/open-tracing.ts";
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
  setEnvironment(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: "api-key=secret",
  });
  const app = await makeTestApp(t, { tracing: await createExporter("http/protobuf", () => {}) });
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
  const app = await makeTestApp(t, {
    tracing: new OTLPTraceExporter({ url: `${collector.endpoint}/v1/traces` }),
  });
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
  const address = { url: "http://127.0.0.1:9/v1/traces", timeoutMillis: 100 };
  const tracing = new OTLPTraceExporter(address);
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

test("spans that the collector does not take in time are dropped beyond 2,048", async (t) => {
  let answers: (() => void)[] | undefined = [];
  const exporter: SpanExporter = {
    export(_spans, onResult) {
      const answer = () => onResult({ code: ExportResultCode.SUCCESS });
      if (answers === undefined) answer();
      else answers.push(answer);
    },
    shutdown: async () => {},
  };
  const { records, now } = await makeTestApp(t);
  const dependencies = { records, now, log: () => {}, version: undefined };
  const tracing = openTracing(exporter, createSampler("always_on", 1), dependencies);
  for (let count = 0; count < 2_050; count++) {
    const request = new Request("https://mos.example/v1/jobs");
    tracing.startRequest(request, "id").end({ route: "/v1/jobs", status: 200 });
  }
  assert.deepEqual(tracing.dropped, { queue_full: 2, export_failed: 0 });
  const waiting = answers;
  answers = undefined;
  for (const answer of waiting) answer();
  await tracing[Symbol.asyncDispose]();
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
    setEnvironment(t, environment);
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
});

test("what OpenTelemetry cannot read of its variables is logged", async (t) => {
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/nowhere.pem",
    OTEL_EXPORTER_OTLP_TIMEOUT: "-1",
  };
  setEnvironment(t, environment);
  const logged: string[] = [];
  const { records, now } = await makeTestApp(t);
  const log: Log = (level, message) => void logged.push(`${level} ${message}`);
  const traced = { about, log, records, now };
  const tracing = await openServiceTracing(settings.parse(environment), traced);
  assert.ok(tracing);
  await tracing[Symbol.asyncDispose]();
  assert.match(logged.join("\n"), /^warn .*root certificate file/m);
  assert.match(logged.join("\n"), /^warn .*OTEL_EXPORTER_OTLP_TIMEOUT is invalid/m);
});

/** For what OpenTelemetry reads itself. */
function setEnvironment(t: TestContext, environment: Readonly<Record<string, string>>): void {
  Object.assign(process.env, environment);
  t.after(() => {
    for (const name of Object.keys(environment)) delete process.env[name];
  });
}
