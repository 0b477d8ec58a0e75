import type { ServiceStatus } from "../../contract/service-status.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { mayDo } from "../session/session.ts";
import { service } from "../session/service.ts";
import { formatDuration } from "../shared/format.ts";
import { Icon } from "../shared/button.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { ProgressBar } from "../shared/status.tsx";
import { useLive } from "../live/use-live.ts";
import { UsageCard } from "./usage-card.tsx";

/** How the service is, and how much of its quotas the project uses. */
export function HealthPage() {
  return (
    <main id="main">
      <PageHead title="Health and usage" />
      <div class="sheet">
        <UsageCard />
        {mayDo("readStatus") && <StatusCards />}
      </div>
    </main>
  );
}

function StatusCards() {
  const {
    value: status,
    error,
    reload,
  } = useLive(() => service.call("getStatus", {}), {
    everyMs: 5000,
  });
  return (
    <>
      {error !== undefined && (
        <div class="c12">
          <MaybeError error={error} retry={reload} />
        </div>
      )}
      {status && <StatusCard status={status} />}
      {status && <DiskCard status={status} />}
    </>
  );
}

interface StatusProps {
  readonly status: ServiceStatus;
}

function StatusCard({ status }: StatusProps) {
  return (
    <section class="card c7">
      <header>
        <h2>Service</h2>
        <span class="grow" />
        <Readiness problem={status.problem} />
      </header>
      <dl class="pairs">
        {Object.entries(listStatusFacts(status)).map(([name, text]) => (
          <div key={name} class="pair">
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Readiness({ problem }: Pick<ServiceStatus, "problem">) {
  return (
    <span class={`status ${problem === null ? "calm" : "bad"}`}>
      <Icon name={problem === null ? "good" : "bad"} />
      {problem ?? "Ready"}
    </span>
  );
}

const places = { local: "processes on this machine", cluster: "pods in a cluster" } as const;
const databases = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;

function listStatusFacts({ jobs, ...status }: ServiceStatus): Readonly<Record<string, string>> {
  const ofWorkers = jobs.workers === null ? "" : ` of ${formatCount(jobs.workers, "worker")}`;
  const wait = formatDuration(1000 * jobs.longestWaitSeconds);
  const age = Date.parse(status.now) - Date.parse(status.startedAt);
  const { service: version = "", ...runtimes } = status.versions;
  return {
    "Jobs running": `${jobs.running}${ofWorkers}`,
    "Jobs waiting": jobs.waiting === 0 ? "none" : `${jobs.waiting}, longest wait ${wait}`,
    "Jobs run as": places[status.executor],
    Database: databases[status.records],
    Uptime: formatDuration(age),
    Memory: formatBytes(status.memory.residentBytes),
    Version: version,
    ...runtimes,
  };
}

function DiskCard({ status: { disk } }: StatusProps) {
  const { freeBytes, totalBytes, reserveBytes } = disk;
  const used = totalBytes - freeBytes;
  return (
    <section class="card c5">
      <header>
        <h2>Disk</h2>
        {freeBytes < reserveBytes && <span class="bad">Full: new jobs are refused</span>}
      </header>
      <div class="quota">
        <p>
          {formatBytes(used)} <span class="dim">of {formatBytes(totalBytes)} used</span>
        </p>
        <ProgressBar fraction={used / Math.max(1, totalBytes)} label="Disk usage" />
        <p class="dim">{formatBytes(reserveBytes)} is reserved for records</p>
      </div>
    </section>
  );
}
