import { ExportResultCode } from "@opentelemetry/core";
import {
  BatchSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace";

/** Why a span is not exported. */
export type DropReason = "queue_full" | "export_failed";

interface QueueOptions {
  /** Spans that wait or are being exported; more are dropped. */
  readonly maxSpans: number;
  /** Longest time for which a span waits for others, milliseconds. */
  readonly delayMs: number;
  readonly onDropped: (reason: DropReason, spans: number, error?: Error) => void;
}

/** Exports ended spans in batches. What cannot be exported is dropped and counted. */
export function createSpanQueue(
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
