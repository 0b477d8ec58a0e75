import { collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { jobStatus } from "../contract/jobs/status.ts";
import type { Records } from "../records/open-records.ts";
import type { DiskSpace } from "../storage/disk-space.ts";
import type { Tracing } from "../tracing/open-tracing.ts";
import { registerEndedJobs } from "./ended-job-metrics.ts";
import { registerDroppedSpans } from "./register-dropped-spans.ts";

const requestBuckets = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30];

interface ObservedRequest {
  readonly method: string;
  /** Path of the route, with the names of its parameters. */
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

interface MetricSources {
  readonly records: Records;
  readonly now: () => Date;
  /** Space of the disk of the records, bytes. */
  readonly readDiskSpace: DiskSpace["read"];
  /** Undefined where nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

/** Metrics of the service, which observes the ends of all jobs until `close()`. */
export interface ServiceMetrics {
  readonly registry: Registry;
  observeRequest(request: ObservedRequest): void;
  close(): void;
}

export function createServiceMetrics(sources: MetricSources): ServiceMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registerJobGauge(registry, sources);
  registerFigures(registry, sources);
  if (sources.tracing) registerDroppedSpans(registry, sources.tracing);
  const observeEnd = registerEndedJobs(registry);
  const { records } = sources;
  const stop = records.changes.onEnded((id) => {
    // The records may be closed meanwhile, with the process.
    void records.metrics.findJob(id).then(
      (job) => job && observeEnd(job),
      () => {},
    );
  });
  return { registry, observeRequest: registerRequests(registry), close: stop };
}

function registerRequests(registry: Registry): ServiceMetrics["observeRequest"] {
  const requests = new Histogram({
    name: "mos_http_request_seconds",
    help: "HTTP requests until their answers began.",
    labelNames: ["method", "route", "status"],
    buckets: requestBuckets,
    registers: [registry],
  });
  return ({ seconds, ...labels }) => requests.observe(labels, seconds);
}

function registerJobGauge(registry: Registry, { records }: MetricSources): void {
  const jobs: Gauge = new Gauge({
    name: "mos_jobs",
    help: "Jobs in each status.",
    labelNames: ["status"],
    registers: [registry],
    collect: async () => {
      // While the records cannot be read, the other metrics are still there.
      const counts = await records.metrics.countByStatus().catch(() => undefined);
      if (counts === undefined) return jobs.reset();
      for (const status of jobStatus.options) jobs.set({ status }, counts.get(status) ?? 0);
    },
  });
}

const figures: readonly (readonly [
  name: string,
  help: string,
  read: (sources: MetricSources) => Promise<number>,
])[] = [
  [
    "mos_oldest_waiting_job_seconds",
    "Since the job was created that has waited longest for its first worker; 0 where none waits.",
    readLongestWait,
  ],
  [
    "mos_disk_free_bytes",
    "Free space of the disk that has the records.",
    async ({ readDiskSpace }) => (await readDiskSpace()).free,
  ],
  [
    "mos_disk_reserve_bytes",
    "Space that new work leaves free for records.",
    async ({ readDiskSpace }) => (await readDiskSpace()).reserve,
  ],
];

function registerFigures(registry: Registry, sources: MetricSources): void {
  for (const [name, help, read] of figures) {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: async () => {
        const figure = await read(sources).catch(() => undefined);
        if (figure === undefined) gauge.remove();
        else gauge.set(figure);
      },
    });
  }
}

async function readLongestWait({ records, now }: MetricSources): Promise<number> {
  const since = await records.metrics.findOldestWaitingTime();
  return since === undefined ? 0 : (now().getTime() - since.getTime()) / 1000;
}
