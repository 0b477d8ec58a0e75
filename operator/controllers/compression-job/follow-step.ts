import type { Target } from "../../../src/contract/target.ts";
import { combine, type Decision, lookAgainAt, nothing } from "./action.ts";
import type { ChildJob } from "./child-job.ts";
import { queueOf } from "./job-manifest.ts";
import { stopAll } from "./stop-all.ts";
import { tell } from "./tell.ts";
import { failsToStart, findWait, type Wait } from "./waiting.ts";
import { startedBy } from "./work-end.ts";
import type { WorkerPod } from "./worker-pod.ts";
import type { World } from "./world.ts";

/** Waiting that is over sooner is not worth a write. */
const settledMs = 3_000;
/** A Job that has no pod for so long is refused one. */
const podMs = 5_000;
/** How often the Job controller is asked why. */
const refusedMs = 30_000;

export const suspended: Wait = { reason: "suspended", message: "The job is suspended" };

interface StepInProgress {
  readonly job: ChildJob;
  /** Those of the Job. */
  readonly pods: readonly WorkerPod[];
  /** Undefined where there is no such target any more. */
  readonly target: Target | undefined;
}

/** Says what a step waits for that has begun and not ended. */
export function followStep(world: World, { job, pods, target }: StepInProgress): Decision {
  const { resource, now, settings, podRefusal } = world;
  if (resource.spec.suspend) return combine(tell(world, suspended), stopAll(world) ?? nothing);
  if (job.deleting || target === undefined) return nothing;
  const found = findWait({ job, pods, target, queue: queueOf(resource), podRefusal });
  const settlesAt = (found?.since ?? -Infinity) + settledMs;
  const asksAt = job.createdAt + podMs;
  return combine(
    settlesAt > now ? lookAgainAt(settlesAt) : tell(world, found?.wait),
    ...pods.filter(failsToStart).map((pod) => lookAgainAt(startedBy(pod, settings.podStartSeconds))),
    lacksPods(job, pods) ? lookAgainAt(asksAt > now ? asksAt : now + refusedMs) : nothing,
  );
}

/** Whether the Job controller has made no pod for so long that it will have said why. */
export function isRefusedPods(job: ChildJob, pods: readonly WorkerPod[], now: number): boolean {
  return lacksPods(job, pods) && job.createdAt + podMs <= now;
}

function lacksPods(job: ChildJob, pods: readonly WorkerPod[]): boolean {
  return job.end === undefined && !job.deleting && !job.suspended && !pods.some(({ jobUid }) => jobUid === job.uid);
}
