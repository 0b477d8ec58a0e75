import { serviceNow } from "../shared/clock.ts";
import { formatDuration, formatExactTime } from "../shared/format-time.ts";
import { type JobSpan, listSpans } from "./list-spans.ts";
import type { JobDetail } from "./shown-job.ts";

/** How long a job was in each status or step; wider is longer. */
export function JobTimeline({ job }: { readonly job: JobDetail }) {
  const spans = listSpans(job, serviceNow.value);
  return (
    <section class="card c12" aria-label="Time in each status">
      <ol class="track" tabIndex={0}>
        {spans.map((span) => (
          <Span key={`${span.title} ${span.at}`} span={span} />
        ))}
      </ol>
    </section>
  );
}

function Span({ span: { title, tone, ms, at } }: { readonly span: JobSpan }) {
  const exact = formatExactTime(at);
  return (
    <li class={tone} style={{ flexGrow: Math.sqrt(ms ?? 0) }} title={`From ${exact}`}>
      <span class="span" />
      <b>{title}</b>
      <small>{ms === undefined ? exact.slice(11, 19) : formatDuration(ms)}</small>
    </li>
  );
}
