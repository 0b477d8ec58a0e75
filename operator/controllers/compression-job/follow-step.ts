import type { Target } from "../../../src/contract/target.ts";
import { combine, type Decision, lookAgainAt, nothing } from "./action.ts";
import type { ChildJob } from "./child-job.ts";
import { queueOf } from "./job-manifest.ts";
import { stopAll } from "./stop-all.ts";
import { tell } from "./tell.ts";
import { findTrouble } from "./trouble.ts";
import { findWait, type Wait } from "./waiting.ts";
import { begunAt, failsToStart, mayRun, type WorkerPod } from "./worker-pod.ts";
import type { World } from "./world.ts";

/** Waiting that is over sooner is not worth a write. */
const settledMs = 3_000;
/** How often the cluster's events are read again. */
const troubleMs = 30_000;

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
  const found = findWait({ job, pods, target, queue: queueOf(resource), trouble });
  const settlesAt = (found?.since ?? -Infinity) + settledMs;
  const troubled = findTrouble(job, pods);
  return combine(
    settlesAt > now ? lookAgainAt(settlesAt) : found || haveNodes(pods) ? tell(world, found?.wait) : nothing,
    ...pods.filter(failsToStart).map((pod) => lookAgainAt(begunAt(pod) + settings.podStartSeconds * 1000)),
    troubled ? lookAgainAt(troubled.from > now ? troubled.from : now + troubleMs) : nothing,
  );
}

function haveNodes(pods: readonly WorkerPod[]): boolean {
  const running = pods.filter(mayRun);
  return running.length > 0 && running.every(({ node }) => node !== undefined);
}
