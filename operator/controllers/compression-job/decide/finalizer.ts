import { recordFinalizer } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { type Action, type Decision, noActions, requeueAt } from "./decision.ts";

/** Keeps the resource until its logs and result are recorded. Comes before its first worker Job. */
export function addFinalizer(observed: ObservedState): readonly Action[] {
  return hasFinalizer(observed) ? [] : [{ type: "setFinalizer", present: true }];
}

/**
 * A deleted resource waits so long for the service to record it: with the time in which workers
 * stop it is gone within a minute, also without a service.
 */
const recordWaitMs = 40_000;

/** Releases the resource once its logs and result are recorded; undefined where that is done. */
export function removeFinalizer(observed: ObservedState): Decision | undefined {
  if (!hasFinalizer(observed)) return undefined;
  return { actions: [{ type: "setFinalizer", present: false }, ...endEvent(observed)] };
}

/** How the job ended; its cancellation has an event by then. */
function endEvent({ resource }: ObservedState): Action[] {
  const { status, statusMessage: message = "" } = resource.status;
  if (status !== "Completed" && status !== "Failed") return [];
  return [{ type: "recordEvent", warning: status === "Failed", reason: status, message }];
}

/** Releases a deleted resource that the service does not record. */
export function releaseUnrecorded(observed: ObservedState): Decision {
  const { deletionSeenAt, now } = observed;
  if (deletionSeenAt === undefined || !hasFinalizer(observed)) return noActions;
  const releaseAt = deletionSeenAt + recordWaitMs;
  return releaseAt <= now
    ? { actions: [{ type: "setFinalizer", present: false }] }
    : requeueAt(releaseAt);
}

export function isTerminalAndRecorded({ resource }: ObservedState): boolean {
  const { status, report } = resource.status;
  return isTerminal(status) && report?.recorded === true;
}

function hasFinalizer({ resource }: ObservedState): boolean {
  return resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
}
