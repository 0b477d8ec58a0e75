import { setTimeout as delay } from "node:timers/promises";

const firstMs = 100;

/**
 * Delay before the next attempt, in milliseconds. It doubles with each failure in a row, with a
 * random part so that clients that failed together do not retry together.
 */
export function backOffMs(failures: number, maxMs: number): number {
  if (failures === 0) return 0;
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (0.5 + Math.random() / 2);
}

/** Waits `ms`. When the signal is aborted it throws the signal's reason. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal?.throwIfAborted());
}
