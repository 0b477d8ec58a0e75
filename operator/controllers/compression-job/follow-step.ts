import type { Target } from "../../../src/contract/target.ts";
import { combine, type Decision, lookAgainAt, nothing } from "./action.ts";
import type { ChildJob } from "./child-job.ts";
import { queueOf } from "./job-manifest.ts";
import { stopAll } from "./stop-all.ts";
import { tell } from "./tell.ts";
import { currentTrouble } from "./trouble.ts";
import { findWait, type Wait } from "./waiting.ts";
import { begunAt, failsToStart, mayRun, type WorkerPod } from "./worker-pod.ts";
import type { World } from "./world.ts";

/** Waiting that is over sooner is not worth a write. */
const settledMs = 3_000;

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
  const { resource, now, settings, trouble } = world;
  if (resource.spec.suspend) return combine(tell(world, suspended), stopAll(world) ?? nothing);
  if (job.deleting || target === undefined) return nothing;
  const found = findWait({ job, pods, target, queue: queueOf(resource), trouble: currentTrouble(world) });
  const settlesAt = (found?.since ?? -Infinity) + settledMs;
  return combine(
    settlesAt > now ? lookAgainAt(settlesAt) : found || haveNodes(pods) ? tell(world, found?.wait) : nothing,
    ...pods.filter(failsToStart).map((pod) => lookAgainAt(begunAt(pod) + settings.podStartSeconds * 1000)),
    ...[trouble?.from, trouble?.until].map((at = 0) => (at > now ? lookAgainAt(at) : nothing)),
  );
}

function haveNodes(pods: readonly WorkerPod[]): boolean {
  const running = pods.filter(mayRun);
  return running.length > 0 && running.every(({ node }) => node !== undefined);
}
