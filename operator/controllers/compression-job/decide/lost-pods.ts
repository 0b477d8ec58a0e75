import type { StatusReason } from "../../../../src/contract/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import { type Action, combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";

/** A pod that its node has not stopped so long after the deadline counts as lost. */
const lostPodMs = 20_000;

export const lostPodReason = "node_unresponsive" satisfies StatusReason;

/** Removes pods whose nodes do not confirm that they stopped. */
export function removeLostPods(observed: ObservedState): Decision {
  const pods = observed.pods.filter(mayRun);
  return combineDecisions(...pods.map((pod) => removeIfLost(observed, pod)));
}

function removeIfLost({ resource, now }: ObservedState, pod: WorkerPod): Decision {
  const { name, uid, node, deletionDeadline } = pod;
  if (node === undefined || deletionDeadline === undefined) return noActions;
  if (deletionDeadline + lostPodMs > now) return requeueAt(deletionDeadline + lostPodMs);
  const notStopped = `The node "${node}" did not confirm that the pod "${name}" stopped`;
  const message = `${notStopped}, and the pod was removed`;
  const patch = { statusReason: lostPodReason, statusMessage: message };
  const isCancelling = resource.status.status === "Cancelling";
  const writes: readonly Action[] = isCancelling ? [{ type: "writeStatus", patch }] : [];
  return {
    actions: [
      ...writes,
      { type: "recordEvent", warning: true, reason: pascalCase(lostPodReason), message },
      { type: "removeLostPod", name, uid, node },
    ],
  };
}
