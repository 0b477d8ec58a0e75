import { setTimeout as delay } from "node:timers/promises";
import { diag } from "@opentelemetry/api";
import { ExportResultCode } from "@opentelemetry/core";
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from "@opentelemetry/resources";
import {
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
/** Spans that wait or are being exported; more are dropped. */
const maxSpans = 2_048;

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

/**
 * Sends spans by the exporter. OpenTelemetry reads the service's name and attributes from its own
 * variables.
 */
export function openTracing(
  exporter: SpanExporter,
  sampler: Sampler,
  dependencies: TracingDependencies,
): Tracing {
  const dropped = { queue_full: 0, export_failed: 0 };
  const warn = createDropWarning(dependencies);
  const queue = createSpanQueue(exporter, (reason, spans, error) => {
    dropped[reason] += spans;
    warn(reason, dropped[reason], error);
  });
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          [ATTR_SERVICE_NAME]: "model-optimization-service",
          [ATTR_SERVICE_VERSION]: dependencies.version,
          [ATTR_SERVICE_INSTANCE_ID]: crypto.randomUUID(),
        }),
      )
      .merge(
        detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
      ),
    sampler,
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

const exporters = {
  "http/json": async () => import("@opentelemetry/exporter-trace-otlp-http"),
  "http/protobuf": async () => import("@opentelemetry/exporter-trace-otlp-proto"),
};

/** Reads OpenTelemetry's variables of the exporter; what is wrong with one is logged. */
export async function createExporter(
  protocol: keyof typeof exporters,
  log: Log,
): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await exporters[protocol]();
  const ignore = () => {};
  const warn = (message: string) => log("warn", message);
  diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore });
  try {
    return new OTLPTraceExporter();
  } finally {
    // Spans that are not exported have a warning of their own, at most one a minute.
    diag.disable();
  }
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
export function createSampler(name: SamplerName, ratio: number): Sampler {
  const share = name.endsWith("always_on") ? 1 : name.endsWith("always_off") ? 0 : ratio;
  const root = new TraceIdRatioBasedSampler(share);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

/** Why a span is not exported. */
type DropReason = "queue_full" | "export_failed";

/** Exports ended spans in batches. What cannot be exported is dropped and counted. */
function createSpanQueue(
  exporter: SpanExporter,
  onDropped: (reason: DropReason, spans: number, error?: Error) => void,
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
  const batches = new BatchSpanProcessor({ exporter: counted, maxQueueSize: maxSpans });
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
