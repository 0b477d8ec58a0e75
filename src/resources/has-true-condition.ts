import type { Condition } from "../contract/custom-resources.ts";

/** Whether the condition of this type is there and `True`. */
export function hasTrueCondition(
  conditions: readonly Condition[] | undefined,
  type: Condition["type"],
): boolean {
  return conditions?.some((one) => one.type === type && one.status === "True") ?? false;
}
