import { Counter, type Registry } from "prom-client";
import type { Tracing } from "../tracing/open-tracing.ts";

export function registerDroppedSpans(registry: Registry, { dropped }: Tracing): void {
  const counter: Counter = new Counter({
    registers: [registry],
    name: "mos_trace_spans_dropped_total",
    help: "Spans that were not exported: too many waited, or the receiver did not take them.",
    labelNames: ["reason"],
    collect: () => {
      counter.reset();
      for (const [reason, spans] of Object.entries(dropped)) counter.inc({ reason }, spans);
    },
  });
}
