import { statusReasonTable } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { combineDecisions, type Decision, noActions } from "./decision.ts";
import { reportWait } from "./report-wait.ts";
import { stopWorkers } from "./stop-workers.ts";
import type { StepWait, Wait, WaitingStep } from "./wait.ts";

const suspended: Wait = { reason: "suspended", message: statusReasonTable.suspended.message };

/** `spec.suspend` while a step runs: stops its workers. */
export function suspendStep(observed: ObservedState): Decision {
  return combineDecisions(reportSuspended(observed), stopWorkers(observed) ?? noActions);
}

/** `spec.suspend` between two steps: nothing is started. */
export function reportSuspended(observed: ObservedState): Decision {
  return reportWait(observed, suspended);
}

export function checkSuspended(step: WaitingStep): StepWait | undefined {
  const { workerJob, queue } = step;
  if (!workerJob.suspended) return undefined;
  const wait: Wait =
    queue === undefined
      ? { reason: "suspended", message: `The Job "${workerJob.name}" is suspended` }
      : { reason: "waiting_for_queue", message: queueMessage(step, queue) };
  return { wait, since: workerJob.createdAt };
}

function queueMessage({ hasBegun }: WaitingStep, queue: string): string {
  return `Waiting to be admitted ${hasBegun ? "again " : ""}by the queue "${queue}"`;
}
