import { setBounded } from "../../../../src/limits/bounded-map.ts";
import type { JobSettings } from "./job-settings.ts";
import type { KnownCosts } from "./known-costs.ts";
import type { ObservedState } from "./observed-state.ts";
import {
  findStepWarning,
  involvedObjectIndex,
  type StepWarning,
  toWarningEvent,
} from "./step-warning.ts";
import { latestWorkerJob, workerJobPods } from "./steps.ts";
import { toWorkerJob } from "./worker-job.ts";
import { isFailingToStart, isWorkerPod, toWorkerPod, type WorkerPod } from "./worker-pod.ts";
import { apiVersion } from "../../../../src/contract/custom-resources/api-group.ts";
import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { ConfiguredTarget } from "../../../../src/contract/custom-resources/target-pod.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { ObjectReader } from "../../../../src/controller-runtime/watch-resource.ts";
import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../../src/resources/job-identity.ts";
import type {
  ObservedEvent,
  ObservedPod,
  ObservedWorkerJob,
} from "../../../../src/resources/observed-resources.ts";
import { objectKey } from "../../../../src/kubernetes/object-key.ts";
import type { KubernetesObject, Stored } from "../../../../src/kubernetes/resources.ts";

interface CompressionJobSources {
  readonly workerJobs: ObjectReader<ObservedWorkerJob>;
  readonly pods: ObjectReader<ObservedPod>;
  readonly warnings: ObjectReader<ObservedEvent>;
  readonly targets: readonly ConfiguredTarget[];
  readonly settings: JobSettings;
  readonly deletions: FirstSeen;
  readonly startFailures: FirstSeen;
  readonly starts: FirstSeen;
  readonly knownCosts: KnownCosts;
  readonly now: Date;
}

/** Reads the state of a CompressionJob from the caches. */
export function observeCompressionJob(
  object: Stored<CompressionJobObject>,
  sources: CompressionJobSources,
): ObservedState {
  const { targets, settings, deletions, knownCosts } = sources;
  const now = sources.now.getTime();
  const resource = toCompressionJob(object);
  if (isTerminal(resource.status.status)) knownCosts.note(resource);
  const jobId = resolveJobId(resource);
  const key = jobIdKey(object.metadata, jobId);
  const observed = {
    now,
    resource,
    jobId,
    deletionSeenAt: seeDeletion(deletions, object, now),
    workerJobs: sources.workerJobs.byIndex(jobIdIndex, key).map(toWorkerJob),
    pods: observePods(sources, { key, now, hasBegun: resource.status.startedAt !== undefined }),
    targets,
    settings,
    knownCosts: knownCosts.find(resource),
  };
  return { ...observed, stepWarning: observeStepWarning(observed, sources.warnings) };
}

function observePods(
  { pods, settings, deletions, startFailures, starts }: CompressionJobSources,
  { key, now, hasBegun }: { key: string; now: number; hasBegun: boolean },
): WorkerPod[] {
  const workers = pods.byIndex(jobIdIndex, key).filter((pod) => isWorkerPod(pod, settings));
  return workers.map((worker) => {
    const pod = toWorkerPod(worker, seeDeletion(deletions, worker, now) ?? now);
    if (isFailingToStart(pod)) return { ...pod, failingSince: startFailures.note(pod.uid, now) };
    if (hasBegun || pod.phase !== "Running") return pod;
    return { ...pod, runningSince: starts.note(pod.uid, now) };
  });
}

/** When this process saw that an object is being deleted; undefined where it is not. */
function seeDeletion(
  deletions: FirstSeen,
  { metadata: { uid, deletionTimestamp } }: Stored<KubernetesObject>,
  now: number,
): number | undefined {
  return deletionTimestamp === undefined ? undefined : deletions.note(uid, now);
}

function observeStepWarning(
  observed: Omit<ObservedState, "stepWarning">,
  warnings: ObjectReader<ObservedEvent>,
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
 * What a cache keeps of a CompressionJob: all but the result, except for what the job takes, and of
 * one that has ended no history either, nor conditions that are of its present generation.
 */
export function trimCompressionJob({
  status,
  ...object
}: Stored<CompressionJobObject>): Stored<CompressionJobObject> {
  if (status === undefined) return object;
  const { report: { telemetry: figures, artifacts: _, ...report } = {}, ...fields } = status;
  const telemetry = figures && { forecast: figures.forecast, usage: figures.usage };
  if (!isTerminal(status.status)) {
    return { ...object, status: { ...fields, report: { ...report, telemetry } } };
  }
  const { gates, recorded } = report;
  const { transitions: __, conditions, ...ended } = fields;
  const isChanged = ended.observedGeneration !== object.metadata.generation;
  return {
    ...object,
    status: { ...ended, ...(isChanged && { conditions }), report: { gates, recorded, telemetry } },
  };
}

/** Index of caches by the id of the job, in its namespace: another may have a copy of it. */
export const jobIdIndex = "job-id";

export function jobIdKey(
  { namespace = "" }: Stored<KubernetesObject>["metadata"],
  id: string,
): string {
  return objectKey({ namespace, name: id });
}

/** The oldest are forgotten first. */
const maxTimes = 20_000;

/**
 * When this process first saw a state of objects, by its own clock: those of the API server and of
 * the nodes may differ.
 */
export class FirstSeen {
  readonly #times = new Map<string, number>();

  /** Milliseconds since 1970: `now` where an object is seen for the first time. */
  note(uid: string, now: number): number {
    const known = this.#times.get(uid);
    if (known !== undefined) return known;
    setBounded(this.#times, uid, now, maxTimes);
    return now;
  }
}
