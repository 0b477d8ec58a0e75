import { type JobCosts, maxSeconds } from "../contract/jobs/telemetry.ts";
import type { EarlierCosts } from "../contract/worker-protocol/messages.ts";

/** How far the sizes of models may differ that take the same memory and disk, as a part of them. */
const sameSize = 0.05;

/**
 * What a job takes that does again what earlier ones did: of memory and disk the most of those with
 * a model of the same size, and their median time for each byte; nothing where there are none.
 */
export function repeatCosts(
  earlier: readonly EarlierCosts[],
  originalBytes: number,
): Partial<JobCosts> {
  const paces = earlier
    .flatMap(({ seconds, originalBytes: bytes }) => (seconds === undefined ? [] : seconds / bytes))
    .sort((a, b) => a - b);
  const pace = paces[Math.floor(paces.length / 2)];
  const alike = earlier.filter(
    (costs) => Math.abs(costs.originalBytes / originalBytes - 1) <= sameSize,
  );
  return {
    ...(alike.length > 0 && {
      peakMemoryBytes: Math.max(...alike.map(({ peakMemoryBytes }) => peakMemoryBytes)),
      diskBytes: Math.max(...alike.map(({ diskBytes }) => diskBytes)),
    }),
    ...(pace !== undefined && { seconds: Math.min(maxSeconds, pace * originalBytes) }),
  };
}
