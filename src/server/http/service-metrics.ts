import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import { errorCode, errorTable } from "../../contract/errors.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { isTerminal, jobStatus } from "../../contract/jobs/status.ts";
import type { Records } from "../../records/open-records.ts";
import type { DiskSpace } from "../../storage/disk-space.ts";
import type { Tracing } from "../../tracing/open-tracing.ts";

const requestBuckets = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30];

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
  observeRequest(request: {
    readonly method: string;
    /** Path of the route, with the names of its parameters. */
    readonly route: string;
    readonly status: number;
    readonly seconds: number;
  }): void;
  /** A file was asked for that is named by records and not stored. */
  countMissingFile(): void;
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
  const stop = records.changes.on("ended", (id) => {
    // The records may be closed meanwhile, with the process.
    void records.metrics.findJob(id).then(
      (job) => job && observeEnd(job),
      () => {},
    );
  });
  return {
    registry,
    observeRequest: registerRequests(registry),
    countMissingFile: registerMissingFiles(registry),
    close: stop,
  };
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

function registerMissingFiles(registry: Registry): () => void {
  const missing = new Counter({
    name: "mos_missing_files_total",
    help: "Files that were asked for, that jobs have in the records, and that are not stored.",
    registers: [registry],
  });
  return () => missing.inc();
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

const jobBuckets = [1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600];

/** Errors that are the service's own, not those of a request or a model. */
const serviceFaults = errorCode.options.filter((code) => errorTable[code].status >= 500);

/** @returns a function that observes a job that has ended */
function registerEndedJobs(registry: Registry): (job: Job) => void {
  const ended = new Counter({
    registers: [registry],
    name: "mos_jobs_ended_total",
    help: "Jobs that ended since the process started, also those that other replicas recorded.",
    labelNames: ["status", "reason"],
  });
  // A rate is known only of a series that began before its first job.
  for (const reason of serviceFaults) ended.inc({ status: "Failed", reason }, 0);
  const observeTimes = registerJobTimes(registry);
  return (job) => {
    const { status, statusReason: reason } = job;
    if (!isTerminal(status)) return;
    ended.inc({ status, reason });
    observeTimes(job);
  };
}

function registerJobTimes(registry: Registry): (job: Job) => void {
  const common = { buckets: jobBuckets, registers: [registry] };
  const waits = new Histogram({
    ...common,
    name: "mos_job_wait_seconds",
    help: "From a job's creation to the start of work.",
  });
  const stages = new Histogram({
    ...common,
    name: "mos_job_stage_seconds",
    help: "Stages of the work on jobs.",
    labelNames: ["stage"],
  });
  return ({ createdAt, startedAt, telemetry: { stageSeconds = {} } }) => {
    if (startedAt !== null) waits.observe((Date.parse(startedAt) - Date.parse(createdAt)) / 1000);
    for (const [stage, seconds] of Object.entries(stageSeconds)) {
      if (seconds !== undefined) stages.observe({ stage }, seconds);
    }
  };
}

function registerDroppedSpans(registry: Registry, { dropped }: Tracing): void {
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
