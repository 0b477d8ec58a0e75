import type { Condition } from "../../../../src/contract/condition.ts";
import { withCondition } from "../../../../src/resources/with-condition.ts";
import type { ObservedState } from "../observe/observed-state.ts";

/** The resource's conditions with this one. */
export function updateCondition(
  { resource, now }: ObservedState,
  condition: Pick<Condition, "type" | "status" | "reason" | "message">,
): Condition[] {
  const { status, metadata } = resource;
  return withCondition(
    status.conditions,
    { ...condition, observedGeneration: metadata.generation },
    new Date(now),
  );
}
