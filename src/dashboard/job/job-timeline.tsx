import { type JobSpan, listSpans } from "./list-spans.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { serviceNow } from "../shared/clock.ts";
import { formatClock, formatDuration, formatExactTime } from "../shared/format.ts";

/** How long a job was in each status or step, to scale. */
export function JobTimeline({ job }: { readonly job: JobDetail }) {
  const spans = listSpans(job, serviceNow.value);
  const timed = spans.filter(({ ms }) => ms !== undefined && ms > 0);
  const [end] = spans.filter(({ ms }) => ms === undefined);
  return (
    <section class="card c12 timeline" aria-label="Time in each status">
      <div class="timeline-bar" aria-hidden="true">
        {timed.map((span, index) => (
          <i
            key={`${span.title} ${span.at}`}
            class={`${span.tone} step-${index % 5}`}
            style={{ flexGrow: span.ms ?? 0 }}
            title={describeSpan(span)}
          />
        ))}
      </div>
      <ol>
        {timed.map((span, index) => (
          <li key={`${span.title} ${span.at}`} title={`From ${formatExactTime(span.at)}`}>
            <i class={`${span.tone} step-${index % 5}`} />
            {span.title} <b>{formatDuration(span.ms ?? 0)}</b>
          </li>
        ))}
        {end && (
          <li title={formatExactTime(end.at)}>
            {end.title} at <b>{formatClock(end.at)}</b>
          </li>
        )}
      </ol>
    </section>
  );
}

function describeSpan({ title, ms }: JobSpan): string {
  return `${title}: ${formatDuration(ms ?? 0)}`;
}
