import type { Condition } from "../contract/custom-resources/condition.ts";

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
