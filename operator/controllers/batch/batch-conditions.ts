import {
  type Condition,
  conditionTypes,
} from "../../../src/contract/custom-resources/condition.ts";
import type { EventReason } from "../../../src/contract/custom-resources/event-reasons.ts";
import { type BatchStatus, isTerminal } from "../../../src/contract/jobs/status.ts";
import { lifecycleConditions } from "../../../src/resources/lifecycle-conditions.ts";
import { withCondition } from "../../../src/resources/with-condition.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

interface ConditionInputs {
  readonly status: BatchStatus;
  readonly message: string | undefined;
  readonly isSuspended: boolean;
}

/** Those of its status, and `Suspended` of a batch that is or was. */
export function batchConditions(
  { batch, now }: ObservedBatchState,
  { status, message = "", isSuspended }: ConditionInputs,
): Condition[] {
  const observedGeneration = batch.metadata.generation ?? 0;
  const before = batch.status?.conditions;
  const conditions = statusConditions(status, message, before).reduce<Condition[]>(
    (all, condition) => withCondition(all, { ...condition, observedGeneration }, now),
    before ?? [],
  );
  if (isTerminal(status)) return conditions;
  const hasSuspended = conditions.some(({ type }) => type === conditionTypes.suspended);
  if (!isSuspended && !hasSuspended) return conditions;
  const suspended = isSuspended ? suspendedCondition : resumedCondition;
  return withCondition(conditions, { ...suspended, observedGeneration }, now);
}

type ConditionValue = Omit<Condition, "lastTransitionTime" | "observedGeneration">;

/** The message of a batch that goes on changes with every job: conditions do not have it. */
function statusConditions(
  status: BatchStatus,
  message: string,
  before: readonly Condition[] | undefined,
): ConditionValue[] {
  if (isTerminal(status)) return lifecycleConditions(status, message, before);
  const type = conditionTypes.finished;
  const unfinished: ConditionValue = { type, status: "False", reason: status, message: "" };
  return [unfinished, ...lifecycleConditions(status, "", before)];
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
