import type { CompressionPlan } from "./plan-compression.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";

/** Writes what a plan does to a model, and why weights stay as they are, to a job's log. */
export function logPlan(
  { weights, shards, originalBytes, resultBytes }: CompressionPlan,
  log: (line: string) => void,
): void {
  const changed = weights.filter(({ format }) => format !== undefined);
  const change = `${changed.length} of ${weights.length} weights change`;
  log(`Plan: ${change}, ${originalBytes} to ${resultBytes} bytes`);
  if (shards.count > 1) log(`Weights are divided into ${shards.count} shards`);
  for (const [reason, count] of countReasons(weights)) {
    log(`Left alone: ${count} weights: each ${reason}`);
  }
}

/** The reasons for which weights do not change, most frequent first. */
function countReasons(weights: readonly WeightPlan[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { format, reason } of weights) {
    if (format !== undefined || reason === undefined) continue;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}
