import { pascalCase } from "./pascal-case.ts";
import { type StepWait, type Wait, type WaitingStep, waitKind } from "./waiting.ts";
import { conditionTypes } from "../../../../src/contract/custom-resources/condition.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import type { Target } from "../../../../src/contract/jobs/target.ts";
import { textLimits } from "../../../../src/contract/limits.ts";
import { truncate } from "../../../../src/contract/text/truncate.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { ConditionValue } from "../../../../src/resources/conditions.ts";
import { isHeldBack, mayRun, type WorkerPod } from "../observe/worker-pod.ts";

export function checkUnscheduledPod({ pods, target }: WaitingStep): StepWait | undefined {
  const pod = pods.find(
    ({ unscheduled, deletionDeadline }) =>
      unscheduled !== undefined && deletionDeadline === undefined,
  );
  if (pod?.unscheduled === undefined) return undefined;
  const { message, since } = pod.unscheduled;
  return { wait: { reason: "unschedulable", message: unschedulableText(message, target) }, since };
}

export function checkHeldBackPod({ pods, warningMessage }: WaitingStep): StepWait | undefined {
  const pod = pods.find(isHeldBack);
  if (warningMessage === "" || pod === undefined) return undefined;
  const message = `No node can take the worker: ${warningMessage}`;
  return { wait: { reason: "unschedulable", message }, since: pod.createdAt };
}

export function areAllScheduled(pods: readonly WorkerPod[]): boolean {
  const running = pods.filter(mayRun);
  return running.length > 0 && running.every(({ node }) => node !== undefined);
}

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

const schedulerPhrases: readonly (readonly [
  RegExp,
  (target: Target, ...groups: string[]) => string,
])[] = [
  [
    /^Insufficient (\S+)$/,
    (target, resource = "") => `not enough ${resource} free${requestText(target, resource)}`,
  ],
  [
    /^node\(s\) had untolerated taint\(?s?\)? ?\{?([^}]*)\}?$/,
    ({ name }, taint = "") =>
      `a taint that the target "${name}" does not tolerate (${taint.replace(/: $/, "")})`,
  ],
  [
    /^node\(s\) didn't match Pod's node affinity\/selector$/,
    ({ name }) => `not among the nodes that the target "${name}" selects`,
  ],
  [/^node\(s\) were unschedulable$/, () => "cordoned"],
];

/**
 * The scheduler's message without its counts of nodes, which change with every node and pod: the
 * status is only written again when something else is missing.
 */
function unschedulableText(message: string, target: Target): string {
  if (message === "no nodes available to schedule pods")
    return "No node can take the worker: there are no nodes";
  const [, list] = /nodes are available: (.*?)\.(?: |$)/s.exec(message) ?? [];
  if (list === undefined) return `No node can take the worker: ${message}`;
  const reasons = list
    .split(/, (?=\d+ )/)
    .map((reason) => schedulerText(reason.replace(/^\d+ /, ""), target));
  return `No node can take the worker: ${[...new Set(reasons)].toSorted().join("; ")}`;
}

function schedulerText(reason: string, target: Target): string {
  for (const [pattern, phrase] of schedulerPhrases) {
    const match = pattern.exec(reason);
    if (match !== null) return phrase(target, ...match.slice(1));
  }
  return reason;
}

function requestText({ gpu, resources = {} }: Target, resource: string): string {
  if (resource === gpu?.resource) return ` (${gpu.count} needed)`;
  const { limits: _, ...requested } = resources;
  const requests: Readonly<Record<string, string | undefined>> = requested;
  const amount = requests[resource];
  return amount === undefined ? "" : ` (${amount} needed)`;
}
