import type { JobError } from "../../../../src/contract/errors.ts";
import type { StatusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { type Decision, noActions, requeueAt } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import type { StepEnd } from "./step-end.ts";
import { transitionPatch } from "./status-patch.ts";

/** The service has the details from the worker's report: it has this long to write the result. */
const serviceReportMs = 10_000;

const completed: StatusCause = { reason: "completed", message: "The worker has done its work" };

/** Ends a job as its last step ended. */
export function finishCompressionJob(
  observed: ObservedState,
  { error, reportedByWorker, at }: StepEnd,
): Decision {
  if (reportedByWorker && at + serviceReportMs > observed.now) {
    return requeueAt(at + serviceReportMs);
  }
  if (error !== undefined) return failCompressionJob(observed, error);
  const startedAt = earliestPodStart(observed);
  const patch = transitionPatch(observed, { to: "Completed", cause: completed, startedAt });
  return patch ? { actions: [{ type: "writeStatus", patch }] } : noActions;
}

/** Ends a job that cannot be done, or whose work failed. */
export function failCompressionJob(observed: ObservedState, error: JobError): Decision {
  const { code: reason, message } = error;
  const cause: StatusCause = { reason, message };
  const startedAt = earliestPodStart(observed);
  const patch = transitionPatch(observed, { to: "Failed", cause, error, startedAt });
  if (patch === undefined) return noActions;
  return {
    actions: [
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: true, reason: pascalCase(reason), message },
    ],
  };
}

function earliestPodStart({ pods }: ObservedState): number | undefined {
  const starts = pods.flatMap((pod) => pod.startedAt ?? []);
  return starts.length > 0 ? Math.min(...starts) : undefined;
}
