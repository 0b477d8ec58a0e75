import type { GateResult } from "./gate.ts";

/** Whether a figure is not known well enough to say on which side of the limit it is. */
export function isUndecided({ limit, interval }: Pick<GateResult, "limit" | "interval">): boolean {
  return interval !== undefined && interval.low <= limit && limit < interval.high;
}

/** Beyond this, more sessions are no advice. */
const mostTimes = 20;

/**
 * How many times as many sessions decide such a gate, since an interval shrinks with the root of
 * their number; undefined where the figure is at the limit, and no number does.
 */
export function timesToDecide(
  actual: number,
  limit: number,
  { low, high }: NonNullable<GateResult["interval"]>,
): number | undefined {
  const side = limit > actual ? high - actual : actual - low;
  const times = Math.ceil((side / Math.abs(limit - actual)) ** 2);
  return times <= mostTimes ? times : undefined;
}
