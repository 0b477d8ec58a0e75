import { type Decision, lookAgainAt, nothing } from "./action.ts";
import { moveJob, pascalCase } from "./status-change.ts";
import type { StepEnd } from "./work-end.ts";
import type { World } from "./world.ts";

/** The service hears the result from the worker itself and knows more of it: it has this long to write it. */
const serviceMs = 10_000;

/** Ends a job as its last step ended. */
export function finish({ resource, pods, now }: World, { error, told, at }: StepEnd): Decision {
  if (told && at + serviceMs > now) return lookAgainAt(at + serviceMs);
  const starts = pods.flatMap((pod) => pod.startedAt ?? []);
  const startedAt = starts.length > 0 ? Math.min(...starts) : undefined;
  if (error === undefined) {
    const cause = { reason: "completed", message: "The worker has done its work" };
    const patch = moveJob(resource, { to: "Completed", cause, startedAt }, now);
    return patch ? { actions: [{ type: "writeStatus", patch }] } : nothing;
  }
  const { code: reason, message } = error;
  const patch = moveJob(resource, { to: "Failed", cause: { reason, message }, error, startedAt }, now);
  if (patch === undefined) return nothing;
  return {
    actions: [
      { type: "writeStatus", patch },
      { type: "recordEvent", warning: true, reason: pascalCase(reason), message },
    ],
  };
}
