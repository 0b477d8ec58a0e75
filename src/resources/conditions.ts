import {
  type Condition,
  conditionTypes,
  type ConditionType,
} from "../contract/custom-resources/condition.ts";
import { type BatchStatus, isTerminal, type JobStatus } from "../contract/jobs/status.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/truncate.ts";

/** The conditions besides `Ready` that are true in each final status. */
const finalConditions = {
  Completed: [conditionTypes.finished, conditionTypes.complete],
  Failed: [conditionTypes.finished, conditionTypes.failed, conditionTypes.stalled],
  Cancelled: [conditionTypes.finished, conditionTypes.stalled],
} as const satisfies Partial<Record<JobStatus, readonly ConditionType[]>>;

/**
 * The conditions by which tools see how a job or batch is, by the conventions of `kubectl wait`,
 * kstatus, Flux and Helm: `Ready` once it is completed, `Stalled` where it never will be. What has
 * ended is no longer `Suspended`, if it was.
 */
export function lifecycleConditions(
  status: JobStatus | BatchStatus,
  message: string,
  before: readonly Condition[] | undefined,
): ConditionValue[] {
  const reason = status;
  const shortMessage = truncate(message, textLimits.conditionMessage);
  const isReady = status === "Completed";
  const ready = { type: conditionTypes.ready, status: isReady ? "True" : "False" } as const;
  if (!isTerminal(status)) return [{ ...ready, reason, message: shortMessage }];
  const { suspended } = conditionTypes;
  const ended = hasTrueCondition(before, suspended) ? [suspended] : [];
  const values = [
    ...finalConditions[status].map((type) => ({ type, status: "True" }) as const),
    ...ended.map((type) => ({ type, status: "False" }) as const),
  ];
  return [ready, ...values].map((value) => ({ ...value, reason, message: shortMessage }));
}

/** What a condition says; when it began, and for which generation, is added where it is set. */
export type ConditionValue = Omit<Condition, "lastTransitionTime" | "observedGeneration">;

/** Adds or replaces a condition. Its `lastTransitionTime` changes only when its status does. */
export function withCondition(
  conditions: readonly Condition[] | undefined = [],
  condition: Omit<Condition, "lastTransitionTime">,
  now: Date,
): Condition[] {
  const before = conditions.find(({ type }) => type === condition.type);
  const lastTransitionTime =
    before?.status === condition.status ? before.lastTransitionTime : now.toISOString();
  return [
    ...conditions.filter(({ type }) => type !== condition.type),
    { ...condition, lastTransitionTime },
  ];
}

/** The same for another generation of the spec: `kubectl wait` ignores those of an earlier one. */
export function ofGeneration(
  conditions: readonly Condition[] | undefined = [],
  observedGeneration: number | undefined,
): Condition[] {
  return conditions.map((condition) => ({ ...condition, observedGeneration }));
}

/** Whether the condition of that type is present with the status True. */
export function hasTrueCondition(
  conditions: readonly Pick<Condition, "type" | "status">[] | undefined = [],
  type: string,
): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === "True");
}
