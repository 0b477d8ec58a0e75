import {
  type Context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type SpanContext,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";

const propagator = new W3CTraceContextPropagator();

interface TraceHeaders {
  readonly traceparent: string | null;
  readonly tracestate?: string | null;
}

/** The context of another process's span; that of a new trace where the headers name none. */
export function parseTraceContext({ traceparent, tracestate }: TraceHeaders): Context {
  const carrier = { traceparent: traceparent ?? "", tracestate: tracestate ?? "" };
  return propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter);
}

/** A span as the header `traceparent` names it. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}
