import { setTimeout as delay } from "node:timers/promises";

const firstMs = 100;

/** How long to wait after so many failures in a row: doubled each time, and never the same for two who failed together. */
export function backOffMs(failures: number, maxMs: number): number {
  if (failures === 0) return 0;
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (0.5 + Math.random() / 2);
}

/** Waits, unless the signal is aborted: then it throws the reason. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await delay(ms, undefined, { ...(signal && { signal }) }).catch(() => signal?.throwIfAborted());
}
