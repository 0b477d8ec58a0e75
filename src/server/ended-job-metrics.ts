import { Counter, Histogram, type Registry } from "prom-client";
import { errorCode, errorTable } from "../contract/errors.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";

const jobBuckets = [1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600];

/** Errors that are the service's own, not those of a request or a model. */
const serviceFaults = errorCode.options.filter((code) => errorTable[code].status >= 500);

/** @returns a function that observes a job that has ended */
export function registerEndedJobs(registry: Registry): (job: Job) => void {
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
