import type { JobError } from "../../../../src/contract/errors.ts";
import type { StatusCause } from "../../../../src/contract/jobs/status-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { type Decision, noActions } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import { transitionPatch } from "./status-patch.ts";
import type { StepEnd } from "./step-end.ts";

const completed: StatusCause = { reason: "completed", message: "The worker has done its work" };

/**
 * Ends a job as its last step ended. A result that the service has confirmed comes with its report,
 * which has the details: `endAsReported` takes it.
 */
export function finishCompressionJob(
  observed: ObservedState,
  { error, delivered }: StepEnd,
): Decision {
  if (delivered) return noActions;
  if (error !== undefined) return failCompressionJob(observed, error);
  const startedAt = earliestPodStart(observed);
  const patch = transitionPatch(observed, "Completed", completed, { startedAt });
  return patch ? { actions: [{ type: "writeStatus", patch }] } : noActions;
}

/** Ends a job that cannot be done, or whose work failed. */
export function failCompressionJob(observed: ObservedState, error: JobError): Decision {
  const { code: reason, message } = error;
  const startedAt = earliestPodStart(observed);
  const patch = transitionPatch(observed, "Failed", { reason, message }, { error, startedAt });
  if (patch === undefined) return noActions;
  return {
    actions: [
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: true, reason: pascalCase(reason), message },
    ],
  };
}

function earliestPodStart({ pods }: ObservedState): string | undefined {
  const starts = pods.flatMap((pod) => pod.startedAt ?? []);
  return starts.length > 0 ? new Date(Math.min(...starts)).toISOString() : undefined;
}
