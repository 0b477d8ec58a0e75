import type { CompressionJob } from "../../../../src/contract/custom-resources/compression-job.ts";
import { statusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { combineDecisions, type Decision, noActions } from "./decision.ts";
import { lostPodReason } from "./lost-pods.ts";
import { stopWorkers } from "./stop-workers.ts";
import { transitionPatch } from "./transition-patch.ts";

/** Whether `spec.cancel` is set or the resource is being deleted, or either was observed before. */
export function isCancelRequested({ metadata, spec, status }: CompressionJob): boolean {
  return spec.cancel || metadata.deletionTimestamp !== undefined || status.status === "Cancelling";
}

/** Cancels a job: Cancelling while workers stop, Cancelled once none may run. */
export function decideCancel(observed: ObservedState): Decision {
  const stopping = stopWorkers(observed);
  if (stopping === undefined) return completeCancel(observed);
  const cause = statusCause("cancel_requested");
  const patch = transitionPatch(observed, { to: "Cancelling", cause });
  return combineDecisions(
    patch ? { actions: [{ type: "writeStatus", patch }] } : noActions,
    stopping,
  );
}

function completeCancel(observed: ObservedState): Decision {
  const { statusReason, statusMessage = "" } = observed.resource.status;
  const lost = statusReason === lostPodReason ? `: ${statusMessage}` : "";
  const { reason, message: cancelled } = statusCause("cancelled");
  const message = `${cancelled}${lost}`;
  const patch = transitionPatch(observed, { to: "Cancelled", cause: { reason, message } });
  if (patch === undefined) return noActions;
  return {
    actions: [
      { type: "confirmStopped" },
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: false, reason: "Cancelled", message },
    ],
  };
}
