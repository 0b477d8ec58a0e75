import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { decideCancel, isCancelRequested } from "./cancel.ts";
import { decideWork } from "./decide-work.ts";
import { type Action, combineDecisions, type Decision } from "./decision.ts";
import { finalizeEndedJob } from "./finalize-ended-job.ts";
import { removeLostPods } from "./lost-pods.ts";
import { requestSyncs } from "./request-syncs.ts";
import { setWorkerJobTtls } from "./worker-job-ttl.ts";

/**
 * What to do about a CompressionJob. Depends on nothing but the observed state: after a crash
 * between any two actions, the next decision continues from there.
 */
export function decide(observed: ObservedState): Decision {
  const decision = combineDecisions(
    removeLostPods(observed),
    setWorkerJobTtls(observed),
    requestSyncs(observed),
    decideLifecycle(observed),
  );
  return reportGeneration(observed, decision);
}

/** A changed spec is reported as observed, also where nothing else is written about it. */
function reportGeneration({ resource }: ObservedState, decision: Decision): Decision {
  const { observedGeneration } = resource.status;
  const { generation } = resource.metadata;
  if (observedGeneration === undefined || observedGeneration === generation) return decision;
  if (decision.actions.some(isOverridingAction)) return decision;
  const write: Action = { type: "writeStatus", patch: { observedGeneration: generation } };
  return { ...decision, actions: [write, ...decision.actions] };
}

/** After these the resource is written anyway, decided about again, or gone. */
function isOverridingAction({ type }: Action): boolean {
  return type === "writeStatus" || type === "observeNodes" || type === "deleteResource";
}

function decideLifecycle(observed: ObservedState): Decision {
  const { resource } = observed;
  if (isTerminal(resource.status.status)) return finalizeEndedJob(observed);
  return isCancelRequested(resource) ? decideCancel(observed) : decideWork(observed);
}
