import { lostLines } from "./lost-lines.ts";
import { byId, type SyncContext } from "./sync-context.ts";
import { observedWorkerPod, type ObservedWorkerPod } from "./observed-worker-pod.ts";

export interface JobPods {
  /** Pods whose workers may report more. */
  readonly running: readonly ObservedWorkerPod[];
  /** Whether everything that the other pods reported is recorded. */
  readonly allRecorded: boolean;
}

/** Records the rest of the output of a job's pods that have ended, and the end of deleted pods. */
export async function recordEndedPods(
  { pods, logCollector, records }: SyncContext,
  jobId: string,
): Promise<JobPods> {
  const observed = pods.cache.byIndex(byId, jobId).map(observedWorkerPod);
  let allRecorded = true;
  for (const pod of observed) {
    if (pod.hasEnded && !(await logCollector.recordEndedPod(pod))) allRecorded = false;
  }
  const present = new Set(observed.map(({ uid }) => uid));
  for (const { attempt, podUid } of await records.attempts.listLivePods(jobId)) {
    if (present.has(podUid) || logCollector.isReading(podUid)) continue;
    const lines = lostLines("its pod was deleted before it had reported its end");
    await records.attempts.end(jobId, attempt, { error: null, lines });
  }
  return { running: observed.filter(({ hasEnded }) => !hasEnded), allRecorded };
}
