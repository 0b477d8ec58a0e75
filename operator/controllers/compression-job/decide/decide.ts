import { isTerminal } from "../../../../src/contract/status.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { decideCancel, isCancelRequested } from "./cancel.ts";
import { decideWork } from "./decide-work.ts";
import { combineDecisions, type Decision } from "./decision.ts";
import { finalizeEndedJob } from "./finalize-ended-job.ts";
import { removeLostPods } from "./lost-pods.ts";
import { delayWorkerJobTtl } from "./worker-job-ttl.ts";

/**
 * What to do about a CompressionJob. Depends on nothing but the observed state: after a crash
 * between any two actions, the next decision continues from there.
 */
export function decide(observed: ObservedState): Decision {
  return combineDecisions(
    removeLostPods(observed),
    delayWorkerJobTtl(observed),
    decideLifecycle(observed),
  );
}

function decideLifecycle(observed: ObservedState): Decision {
  const { resource } = observed;
  if (isTerminal(resource.status.status)) return finalizeEndedJob(observed);
  return isCancelRequested(resource) ? decideCancel(observed) : decideWork(observed);
}
