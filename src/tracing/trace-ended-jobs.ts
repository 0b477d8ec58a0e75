import {
  type Context,
  type Link,
  type SpanContext,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { ATTR_ERROR_TYPE } from "@opentelemetry/semantic-conventions";
import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import { type DescribedSpan, describeJobTrace } from "./describe-job-trace.ts";
import { parseTraceContext } from "./trace-context.ts";

interface TracedRecords {
  readonly records: Pick<Records, "changes" | "traces">;
  readonly log: Log;
}

/** Traces of jobs whose ends this process records. */
interface JobTraces {
  /** Resolves when the spans of all jobs that have ended are made. */
  close(): Promise<void>;
}

/**
 * Makes the spans of each job when it has ended, from what was recorded of it: workers send none.
 */
export function traceEndedJobs(tracer: Tracer, { records, log }: TracedRecords): JobTraces {
  let made: Promise<void> = Promise.resolve();
  const traceJob = async (id: string) => {
    const traced = await records.traces.findJob(id);
    if (traced === undefined) return;
    writeSpan(tracer, describeJobTrace(traced), parseTraceContext(traced));
  };
  const stop = records.changes.on("endedHere", (id) => {
    made = made
      .then(async () => traceJob(id))
      .catch((error: unknown) => log("warn", "A job could not be traced", { job: id, error }));
  });
  return {
    close: async () => {
      stop();
      await made;
    },
  };
}

function writeSpan(tracer: Tracer, described: DescribedSpan, parent: Context): void {
  const contexts = new Map<DescribedSpan, SpanContext>();
  const write = (described: DescribedSpan, context: Context) => {
    const { name, attributes, error, events = [], repeats } = described;
    const repeated = repeats && contexts.get(repeats);
    const links: Link[] = repeated ? [{ context: repeated }] : [];
    const startTime = new Date(described.start);
    const span = tracer.startSpan(name, { startTime, attributes, links }, context);
    contexts.set(described, span.spanContext());
    for (const event of events) span.addEvent(event.name, event.attributes, new Date(event.at));
    if (error !== undefined) {
      span.setAttribute(ATTR_ERROR_TYPE, error).setStatus({ code: SpanStatusCode.ERROR });
    }
    for (const child of described.children) write(child, trace.setSpan(context, span));
    span.end(new Date(described.end));
  };
  write(described, parent);
}
