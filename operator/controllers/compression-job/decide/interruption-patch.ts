import { canTransition } from "../../../../src/contract/jobs/status.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/bounded-text.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun } from "../observe/worker-pod.ts";
import { appendTransition } from "./append-transition.ts";
import type { StatusPatch } from "./decision.ts";
import type { Wait } from "./wait.ts";

/**
 * Takes a job back to Pending whose pods the cluster took away and that waits for others. Undefined
 * as long as one of its pods runs.
 */
export function interruptionPatch(
  { resource, pods, now }: ObservedState,
  wait: Wait | undefined,
): StatusPatch | undefined {
  const { spec, status } = resource;
  const isWorking = pods.some((pod) => pod.phase === "Running" && mayRun(pod));
  if (wait === undefined || isWorking) return undefined;
  if (!canTransition(spec.kind, status.status, "Pending")) return undefined;
  const message = truncate(wait.message, textLimits.statusMessage);
  const { reason } = wait;
  const at = new Date(now).toISOString();
  return {
    status: "Pending",
    statusReason: reason,
    statusMessage: message,
    transitions: appendTransition(status, { status: "Pending", at, reason, message }),
  };
}
