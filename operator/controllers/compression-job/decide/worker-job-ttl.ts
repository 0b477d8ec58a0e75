import type { JobStep } from "../../../../src/resources/job-identity.ts";
import type { WorkerSettings } from "../observe/job-settings.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { ownedWorkerJobs } from "../observe/owned-worker-jobs.ts";
import type { WorkerJob } from "../observe/worker-job.ts";
import { combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import { isTerminalAndRecorded } from "./finalizer.ts";

/** The TTL of a worker Job is removed this long before it expires, if the job is not recorded. */
const ttlMarginMs = 600_000;

/** Undefined for steps before the last: their worker Jobs show which steps are done. */
export function workerJobTtl(step: JobStep, { ttlSeconds }: WorkerSettings): number | undefined {
  return step === "work" || step === "assemble" ? ttlSeconds : undefined;
}

/** Keeps worker Jobs, and with them the logs of their pods, until the job is recorded. */
export function delayWorkerJobTtl(observed: ObservedState): Decision {
  const workerJobs = ownedWorkerJobs(observed).filter(({ deleting }) => !deleting);
  const decideTtl = isTerminalAndRecorded(observed) ? restoreTtl : removeTtlBeforeExpiry;
  return combineDecisions(...workerJobs.map((workerJob) => decideTtl(observed, workerJob)));
}

function restoreTtl({ settings }: ObservedState, { name, end, ttlSeconds }: WorkerJob): Decision {
  if (end === undefined || ttlSeconds !== undefined) return noActions;
  return { actions: [{ type: "setWorkerJobTtl", name, seconds: settings.ttlSeconds }] };
}

function removeTtlBeforeExpiry(
  { now }: ObservedState,
  { name, end, ttlSeconds }: WorkerJob,
): Decision {
  if (end === undefined || ttlSeconds === undefined) return noActions;
  const latest = end.at + ttlSeconds * 1000 - Math.min(ttlMarginMs, ttlSeconds * 500);
  return latest <= now
    ? { actions: [{ type: "setWorkerJobTtl", name, seconds: null }] }
    : requeueAt(latest);
}
