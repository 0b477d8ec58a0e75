import {
  type Condition,
  conditionTypes,
} from "../../../../src/contract/custom-resources/condition.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/bounded-text.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { mayRun, type WorkerPod } from "../observe/worker-pod.ts";
import { pascalCase } from "./pascal-case.ts";
import { unschedulableText } from "./unschedulable-text.ts";
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

type ConditionValue = Pick<Condition, "type" | "status" | "reason" | "message">;

/** The condition `Scheduled`; undefined for a job that never waited for a node. */
export function scheduledCondition(
  { resource }: ObservedState,
  wait: Wait | undefined,
): ConditionValue | undefined {
  const type = conditionTypes.scheduled;
  const before = resource.status.conditions?.find((condition) => condition.type === type);
  if (wait !== undefined && !waitKind(wait).hasNode) {
    const message = truncate(wait.message, textLimits.statusMessage);
    return { type, status: "False", reason: pascalCase(wait.reason), message };
  }
  return before?.status === "False" ? { type, ...scheduled } : before;
}

const scheduled = {
  status: "True",
  reason: "Scheduled" satisfies EventReason,
  message: "Every pod has a node",
} as const;
