import {
  type Condition,
  conditionTypes,
} from "../../../../src/contract/custom-resources/condition.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { Wait } from "./wait.ts";

/** The condition `Suspended`; undefined for a job that never was. */
export function suspendedCondition(
  { resource }: ObservedState,
  wait: Wait | undefined,
): Pick<Condition, "type" | "status" | "reason" | "message"> | undefined {
  const type = conditionTypes.suspended;
  if (wait?.reason === "suspended") {
    return { type, status: "True", reason: "Suspended" satisfies EventReason, message: "" };
  }
  const before = resource.status.conditions?.find((condition) => condition.type === type);
  return before?.status === "True"
    ? { type, status: "False", reason: "Resumed" satisfies EventReason, message: "" }
    : before;
}
