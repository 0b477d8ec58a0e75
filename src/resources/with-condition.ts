import type { Condition } from "../contract/custom-resources/condition.ts";

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
