import type { Condition } from "../../../../src/contract/custom-resources/condition.ts";
import { withCondition } from "../../../../src/resources/with-condition.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** The resource's conditions with these. */
export function updateConditions(
  { resource, now }: ObservedState,
  updates: readonly Pick<Condition, "type" | "status" | "reason" | "message">[],
): Condition[] {
  const { status, metadata } = resource;
  return updates.reduce<Condition[]>(
    (all, condition) =>
      withCondition(all, { ...condition, observedGeneration: metadata.generation }, new Date(now)),
    status.conditions ?? [],
  );
}
