import { type Decision, requeueAt, noActions } from "./decision.ts";
import { transitionPatch, pascalCase } from "./transition-patch.ts";
import type { StepEnd } from "./find-step-end.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** The service hears the result from the worker itself and knows more of it: it has this long to write it. */
const serviceReportMs = 10_000;

/** Ends a job as its last step ended. */
export function finishCompressionJob(
  { resource, pods, now }: ObservedState,
  { error, reportedByWorker, at }: StepEnd,
): Decision {
  if (reportedByWorker && at + serviceReportMs > now) return requeueAt(at + serviceReportMs);
  const starts = pods.flatMap((pod) => pod.startedAt ?? []);
  const startedAt = starts.length > 0 ? Math.min(...starts) : undefined;
  if (error === undefined) {
    const cause = { reason: "completed", message: "The worker has done its work" };
    const patch = transitionPatch(resource, { to: "Completed", cause, startedAt }, now);
    return patch ? { actions: [{ type: "writeStatus", patch }] } : noActions;
  }
  const { code: reason, message } = error;
  const patch = transitionPatch(
    resource,
    { to: "Failed", cause: { reason, message }, error, startedAt },
    now,
  );
  if (patch === undefined) return noActions;
  return {
    actions: [
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: true, reason: pascalCase(reason), message },
    ],
  };
}
