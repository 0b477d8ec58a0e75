import type { StatusReason } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import { type Action, combineDecisions, type Decision, noActions, requeueAt } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";

/** A pod that its node has not stopped so long after the deadline counts as lost. */
const lostPodMs = 20_000;
/** How often a node that still reports is looked up again. */
const nodeRetryMs = 10_000;

export const lostPodReason = "node_unresponsive" satisfies StatusReason;

/**
 * Removes pods whose nodes do not confirm that they stopped and report nothing else either. A node
 * that reports still stops the pod: its process may run.
 */
export function removeLostPods(observed: ObservedState): Decision {
  const pods = observed.pods.filter(mayRun);
  return combineDecisions(...pods.map((pod) => removeIfLost(observed, pod)));
}

function removeIfLost(observed: ObservedState, pod: WorkerPod): Decision {
  const { resource, now, readyNodes } = observed;
  const { name, uid, node, deletionDeadline } = pod;
  if (node === undefined || deletionDeadline === undefined) return noActions;
  if (deletionDeadline + lostPodMs > now) return requeueAt(deletionDeadline + lostPodMs);
  if (readyNodes === undefined) return { actions: [{ type: "observeNodes" }] };
  if (readyNodes.has(node)) return requeueAt(now + nodeRetryMs);
  const notStopped = `The node "${node}" did not confirm that the pod "${name}" stopped`;
  const message = `${notStopped}, and the pod was removed`;
  const patch = {
    statusReason: lostPodReason,
    statusMessage: message,
    observedGeneration: resource.metadata.generation,
  };
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
