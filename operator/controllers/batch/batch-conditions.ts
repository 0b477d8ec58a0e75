import { type Condition, conditionTypes } from "../../../src/contract/condition.ts";
import type { EventReason } from "../../../src/contract/event-reasons.ts";
import { type BatchStatus, isTerminal } from "../../../src/contract/status.ts";
import { withCondition } from "../../../src/resources/with-condition.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

interface ConditionInputs {
  readonly status: BatchStatus;
  readonly message: string | undefined;
  readonly isSuspended: boolean;
}

/** `Finished`, and `Suspended` of a batch that is or was. */
export function batchConditions(
  { batch, now }: ObservedBatchState,
  { status, message = "", isSuspended }: ConditionInputs,
): Condition[] {
  const observedGeneration = batch.metadata.generation ?? 0;
  const finished = { ...finishedCondition(status, message), observedGeneration };
  const conditions = withCondition(batch.status?.conditions, finished, now);
  const hasSuspended = conditions.some(({ type }) => type === conditionTypes.suspended);
  if (!isSuspended && !hasSuspended) return conditions;
  const suspended = isSuspended ? suspendedCondition : resumedCondition;
  return withCondition(conditions, { ...suspended, observedGeneration }, now);
}

type ConditionValue = Omit<Condition, "lastTransitionTime" | "observedGeneration">;

function finishedCondition(status: BatchStatus, message: string): ConditionValue {
  const type = conditionTypes.finished;
  return isTerminal(status)
    ? { type, status: "True", reason: status, message }
    : { type, status: "False", reason: status, message: "" };
}

const suspendedCondition: ConditionValue = {
  type: conditionTypes.suspended,
  status: "True",
  reason: "Suspended" satisfies EventReason,
  message: "",
};

const resumedCondition: ConditionValue = {
  type: conditionTypes.suspended,
  status: "False",
  reason: "Resumed" satisfies EventReason,
  message: "",
};
