import { type Condition, conditionTypes } from "../../../../src/contract/condition.ts";
import type { EventReason } from "../../../../src/contract/event-reasons.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/truncate.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import type { StatusPatch } from "./decision.ts";
import { pascalCase } from "./pascal-case.ts";
import { unschedulableText } from "./unschedulable-text.ts";
import { updateCondition } from "./update-condition.ts";
import { waitKind, type StepWait, type Wait, type WaitingStep } from "./wait.ts";

export function checkUnscheduledPod({ pods, target }: WaitingStep): StepWait | undefined {
  const pod = pods.find(
    ({ unscheduled, deletionDeadline }) =>
      unscheduled !== undefined && deletionDeadline === undefined,
  );
  if (pod?.unscheduled === undefined) return undefined;
  const { message, since } = pod.unscheduled;
  return { wait: { reason: "unschedulable", message: unschedulableText(message, target) }, since };
}

export function areAllScheduled(pods: readonly WorkerPod[]): boolean {
  const running = pods.filter(mayRun);
  return running.length > 0 && running.every(({ node }) => node !== undefined);
}

/** The condition `Scheduled` where it changes; a job that never waited for a node has none. */
export function scheduledConditionPatch(
  observed: ObservedState,
  wait: Wait | undefined,
): StatusPatch {
  const type = conditionTypes.scheduled;
  const before = observed.resource.status.conditions?.find((condition) => condition.type === type);
  const isWaiting = wait !== undefined && !waitKind(wait).hasNode;
  if (!isWaiting && before?.status !== "False") return {};
  const next = isWaiting ? unscheduledCondition(wait) : scheduledCondition;
  const isSame =
    before?.status === next.status &&
    before.reason === next.reason &&
    before.message === next.message;
  return isSame ? {} : { conditions: updateCondition(observed, { type, ...next }) };
}

type ConditionValue = Pick<Condition, "status" | "reason" | "message">;

const scheduledCondition: ConditionValue = {
  status: "True",
  reason: "Scheduled" satisfies EventReason,
  message: "Every pod has a node",
};

function unscheduledCondition({ reason, message }: Wait): ConditionValue {
  return {
    status: "False",
    reason: pascalCase(reason),
    message: truncate(message, textLimits.statusMessage),
  };
}
