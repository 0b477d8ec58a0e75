import { byId, type Mirror } from "./mirror.ts";
import { readPod, type WorkerPod } from "./worker-pod.ts";

export interface JobPods {
  /** Pods whose workers may still say something. */
  readonly running: readonly WorkerPod[];
  /** Whether all that the other pods said is recorded. */
  readonly captured: boolean;
}

/** Records what is left of a job's pods that have ended or are gone. */
export async function settlePods({ pods, captures, records }: Mirror, jobId: string): Promise<JobPods> {
  const all = pods.cache.byIndex(byId, jobId).map(readPod);
  let captured = true;
  for (const pod of all) if (pod.ended && !(await captures.finish(pod))) captured = false;
  const present = new Set(all.map(({ uid }) => uid));
  for (const { attempt, podUid } of await records.attempts.livePods(jobId)) {
    if (!present.has(podUid)) await records.attempts.end(jobId, attempt, { error: null, lines: [] });
  }
  return { running: all.filter(({ ended }) => !ended), captured };
}
