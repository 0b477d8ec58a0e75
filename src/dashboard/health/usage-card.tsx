import { formatBytes } from "../../contract/text/format-bytes.ts";
import { MaybeError } from "../shared/notice.tsx";
import { ProgressBar } from "../shared/status.tsx";
import { useUsage } from "../live/use-usage.ts";

export function UsageCard() {
  const { value: usage, error, reload } = useUsage();
  return (
    <section class="card c12">
      <header>
        <h2>Quotas</h2>
        <span class="dim">of project {usage?.project}</span>
      </header>
      <MaybeError error={error} retry={reload} />
      {usage && (
        <div class="quotas">
          <Quota title="Storage" {...usage.storedBytes} format={formatBytes} />
          <Quota title="Waiting jobs" {...usage.waitingJobs} format={formatCount} />
          <Quota title="Running jobs" {...usage.runningJobs} format={formatCount} />
          <Quota title="Requests per minute" {...usage.requestsPerMinute} format={formatCount} />
        </div>
      )}
    </section>
  );
}

interface QuotaProps {
  readonly title: string;
  readonly used: number;
  readonly limit: number | null;
  readonly format: (value: number) => string;
}

function Quota({ title, used, limit, format }: QuotaProps) {
  return (
    <div class="quota">
      <h3>{title}</h3>
      <p>
        {format(used)}{" "}
        <span class="dim">{limit === null ? "no limit" : `of ${format(limit)}`}</span>
      </p>
      {limit !== null && <ProgressBar fraction={Math.min(1, used / limit)} label={title} />}
    </div>
  );
}

function formatCount(count: number): string {
  return count.toLocaleString("en");
}
