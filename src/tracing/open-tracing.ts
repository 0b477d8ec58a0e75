import { setTimeout as delay } from "node:timers/promises";
import { ExportResultCode } from "@opentelemetry/core";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
} from "@opentelemetry/semantic-conventions";
import { type RequestSpan, startRequestSpan } from "./request-span.ts";
import { traceEndedJobs } from "./trace-ended-jobs.ts";
import { errorMessage } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";

/** Longest value of an attribute, characters: callers choose some of them. */
const maxAttributeLength = 1024;
/** How long the last spans may take when the service ends. */
const closeMs = 5_000;
const warningIntervalMs = 60_000;

const exporters = {
  "http/json": async () => import("@opentelemetry/exporter-trace-otlp-http"),
  "http/protobuf": async () => import("@opentelemetry/exporter-trace-otlp-proto"),
};
type OtlpProtocol = keyof typeof exporters;

/** Where spans are sent, and which. */
export interface TracingOptions {
  /** Address to which batches of spans are posted. */
  readonly url: string;
  readonly protocol: OtlpProtocol;
  readonly headers: Readonly<Record<string, string>>;
  /** Time for a batch with all its retries, milliseconds. */
  readonly timeoutMs: number;
  /** PEM certificates of who signs the receiver's; public authorities' without it. */
  readonly certificates: string | undefined;
  /** Attributes of the service, in place of its own. */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly sampler: SamplerName;
  readonly ratio: number;
  readonly maxSpans: number;
  readonly delayMs: number;
}

interface TracingDependencies {
  readonly records: Pick<Records, "changes" | "traces">;
  readonly version: string | undefined;
  readonly now: () => Date;
  readonly log: Log;
}

/** Makes spans of requests and jobs, and exports them. */
export interface Tracing extends AsyncDisposable {
  startRequest(request: Request, id: string): RequestSpan;
  /** Spans that were not exported, by the reason. */
  readonly dropped: Readonly<Record<DropReason, number>>;
}

export async function openTracing(
  options: TracingOptions,
  dependencies: TracingDependencies,
): Promise<Tracing> {
  const { resourceAttributes, sampler, ratio } = options;
  const dropped = { queue_full: 0, export_failed: 0 };
  const warn = createDropWarning(dependencies);
  const queue = createSpanQueue(await createExporter(options), {
    ...options,
    onDropped(reason, spans, error) {
      dropped[reason] += spans;
      warn(reason, dropped[reason], error);
    },
  });
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        [ATTR_SERVICE_NAME]: "model-optimization-service",
        [ATTR_SERVICE_VERSION]: dependencies.version,
        [ATTR_SERVICE_INSTANCE_ID]: crypto.randomUUID(),
        ...resourceAttributes,
      }),
    ),
    sampler: createSampler(sampler, ratio),
    spanLimits: { attributeValueLengthLimit: maxAttributeLength },
    spanProcessors: [queue],
  });
  const tracer = provider.getTracer("model-optimization-service", dependencies.version);
  const jobs = traceEndedJobs(tracer, dependencies);
  return {
    startRequest: (request, id) => startRequestSpan(tracer, request, id),
    dropped,
    async [Symbol.asyncDispose]() {
      // What could not be exported is counted and logged.
      const closed = jobs.close().then(async () => provider.shutdown().catch(() => {}));
      await Promise.race([closed, delay(closeMs, undefined, { ref: false })]);
    },
  };
}

async function createExporter({
  url,
  protocol,
  headers,
  timeoutMs: timeoutMillis,
  certificates: ca,
}: TracingOptions): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await exporters[protocol]();
  const httpAgentOptions = ca === undefined ? { keepAlive: true } : { keepAlive: true, ca };
  return new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis, httpAgentOptions });
}

/** A receiver that is away would fill the log. */
function createDropWarning({ now, log }: TracingDependencies) {
  let last = -Infinity;
  return (reason: DropReason, spans: number, error: Error | undefined) => {
    const at = now().getTime();
    if (at - last < warningIntervalMs) return;
    last = at;
    const cause = error === undefined ? {} : { cause: errorMessage(error) };
    log("warn", "Spans of traces are dropped", { reason, spans, ...cause });
  };
}

/** Which traces are recorded, as OpenTelemetry names it. */
type SamplerName = `${"" | "parentbased_"}${"always_on" | "always_off" | "traceidratio"}`;

/** @param ratio share of the traces that `traceidratio` records, 0 to 1 */
function createSampler(name: SamplerName, ratio: number): Sampler {
  switch (name) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(ratio);
    case "parentbased_always_on":
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}

/** Why a span is not exported. */
type DropReason = "queue_full" | "export_failed";

interface QueueOptions {
  /** Spans that wait or are being exported; more are dropped. */
  readonly maxSpans: number;
  /** Longest time for which a span waits for others, milliseconds. */
  readonly delayMs: number;
  readonly onDropped: (reason: DropReason, spans: number, error?: Error) => void;
}

/** Exports ended spans in batches. What cannot be exported is dropped and counted. */
function createSpanQueue(
  exporter: SpanExporter,
  { maxSpans, delayMs, onDropped }: QueueOptions,
): SpanProcessor {
  let queued = 0;
  const counted: SpanExporter = {
    export(spans, onResult) {
      exporter.export(spans, (result) => {
        queued -= spans.length;
        if (result.code === ExportResultCode.FAILED) {
          onDropped("export_failed", spans.length, result.error);
        }
        onResult(result);
      });
    },
    shutdown: async () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counted,
    maxQueueSize: maxSpans,
    scheduledDelayMillis: delayMs,
  });
  return {
    onStart() {},
    onEnd(span) {
      if (queued >= maxSpans) return onDropped("queue_full", 1);
      queued++;
      batches.onEnd(span);
    },
    forceFlush: async () => batches.forceFlush(),
    shutdown: async () => batches.shutdown(),
  };
}
