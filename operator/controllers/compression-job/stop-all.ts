import type { Action, Decision } from "./action.ts";
import type { ChildJob } from "./child-job.ts";
import { mayRun, type WorkerPod } from "./worker-pod.ts";
import { childrenOf, type World } from "./world.ts";

/** Ends all work of the job; undefined when there is none any more. */
export function stopAll(world: World): Decision | undefined {
  const jobs = childrenOf(world).filter(({ end }) => end === undefined);
  const pods = world.pods.filter(mayRun);
  if (jobs.length === 0 && pods.length === 0) return undefined;
  return { actions: [...jobs.flatMap(deleteJob), ...pods.flatMap(deletePod)] };
}

function deleteJob({ name, uid, deleting }: ChildJob): Action[] {
  return deleting ? [] : [{ type: "deleteJob", name, uid }];
}

/** Pods are not left to the garbage collector, which takes its time where there are many. */
function deletePod({ name, uid, deletedBy }: WorkerPod): Action[] {
  return deletedBy === undefined ? [{ type: "deletePod", name, uid }] : [];
}
