import type { Condition } from "../contract/custom-resources/condition.ts";

/** Whether the condition of that type is present with the status True. */
export function hasTrueCondition(
  conditions: readonly Pick<Condition, "type" | "status">[] | undefined = [],
  type: string,
): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === "True");
}
