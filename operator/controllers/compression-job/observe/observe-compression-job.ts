import type { DeletionTimes } from "./deletion-times.ts";
import { jobIdIndex, jobIdKey } from "./job-id-index.ts";
import type { JobSettings } from "./job-settings.ts";
import type { ObservedState } from "./observed-state.ts";
import {
  findStepWarning,
  involvedObjectIndex,
  type StepWarning,
  toWarningEvent,
} from "./step-warning.ts";
import { latestWorkerJob, workerJobPods } from "./steps.ts";
import { toWorkerJob } from "./worker-job.ts";
import { isWorkerPod, toWorkerPod, type WorkerPod } from "./worker-pod.ts";
import { apiVersion } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { Reflector } from "../../../../src/kubernetes/reflector.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../../src/resources/job-identity.ts";
import type {
  ObservedEvent,
  ObservedPod,
  ObservedWorkerJob,
} from "../../../../src/resources/observed-resources.ts";

interface CompressionJobSources {
  readonly workerJobs: Reflector<ObservedWorkerJob>;
  readonly pods: Reflector<ObservedPod>;
  readonly warnings: Reflector<ObservedEvent>;
  readonly targets: readonly ConfiguredTarget[];
  readonly settings: JobSettings;
  readonly deletions: DeletionTimes;
  readonly now: Date;
}

/** Reads the state of a CompressionJob from the caches. */
export function observeCompressionJob(
  object: Stored<CompressionJobObject>,
  sources: CompressionJobSources,
): ObservedState {
  const { targets, settings, deletions } = sources;
  const now = sources.now.getTime();
  const resource = toCompressionJob(object);
  const jobId = resolveJobId(resource);
  const key = jobIdKey(object.metadata, jobId);
  const observed = {
    now,
    resource,
    jobId,
    deletionSeenAt: deletions.note(object, now),
    workerJobs: sources.workerJobs.byIndex(jobIdIndex, key).map(toWorkerJob),
    pods: observePods(sources, key, now),
    targets,
    settings,
  };
  return { ...observed, stepWarning: observeStepWarning(observed, sources.warnings) };
}

function observePods(
  { pods, settings, deletions }: CompressionJobSources,
  key: string,
  now: number,
): WorkerPod[] {
  const workers = pods.byIndex(jobIdIndex, key).filter((pod) => isWorkerPod(pod, settings));
  return workers.map((pod) => toWorkerPod(pod, deletions.note(pod, now) ?? now));
}

function observeStepWarning(
  observed: Omit<ObservedState, "stepWarning">,
  warnings: Reflector<ObservedEvent>,
): StepWarning | undefined {
  const workerJob = latestWorkerJob(observed);
  if (workerJob === undefined) return undefined;
  return findStepWarning(workerJob, workerJobPods(observed, workerJob), (uid) =>
    warnings.byIndex(involvedObjectIndex, uid).map(toWarningEvent),
  );
}

/** A stored object with the defaults that the API server leaves out. */
export function toCompressionJob(object: Stored<CompressionJobObject>): CompressionJob {
  const { metadata, spec, status = { status: "Pending" } } = object;
  const { namespace = "", generation = 0 } = metadata;
  return {
    apiVersion,
    kind: "CompressionJob",
    metadata: { ...metadata, namespace, generation },
    spec,
    status,
  };
}

/**
 * What a cache keeps of a CompressionJob: all but the result, on which no decision depends, and of
 * one that has ended no history either.
 */
export function trimCompressionJob({
  status,
  ...object
}: Stored<CompressionJobObject>): Stored<CompressionJobObject> {
  if (status === undefined) return object;
  const { report: { telemetry: _, artifacts: __, ...report } = {}, ...fields } = status;
  if (!isTerminal(status.status)) return { ...object, status: { ...fields, report } };
  const { gates, recorded } = report;
  const { transitions: ___, conditions: ____, ...ended } = fields;
  return { ...object, status: { ...ended, report: { gates, recorded } } };
}
