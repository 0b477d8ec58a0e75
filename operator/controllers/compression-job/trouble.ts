import type { ChildJob } from "./child-job.ts";
import { begunAt, isBeingPrepared, type WorkerPod } from "./worker-pod.ts";

/**
 * A Job that has no pod for so long is refused one, or the control plane is busy: then it must not be made to look through all events of
 * the namespace for every Job.
 */
const missingMs = 20_000;
/** A pod that is prepared for so long meets with difficulties, or pulls a large image. */
const preparedMs = 30_000;

/** An object whose events may say why a step makes no headway, and from when on they are worth reading. */
export interface Trouble {
  readonly uid: string;
  /** Milliseconds since 1970. */
  readonly from: number;
}

export function findTrouble(job: ChildJob, pods: readonly WorkerPod[]): Trouble | undefined {
  if (job.end !== undefined || job.deleting || job.suspended) return undefined;
  if (pods.length === 0) return { uid: job.uid, from: job.createdAt + missingMs };
  const pod = pods.find(isBeingPrepared);
  return pod && { uid: pod.uid, from: begunAt(pod) + preparedMs };
}
