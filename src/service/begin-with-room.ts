import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "../log/error-message.ts";
import type { Log } from "../log/json-log.ts";
import { isFullDisk } from "../storage/file-error.ts";

const retryMs = 5_000;

/**
 * Begins the work on jobs, which writes. While the disk is too full for that the service only reads,
 * and tries again until it succeeds or `stack` is disposed of.
 * @returns what was begun; undefined where the disk is full
 */
export async function beginWithRoom<Begun>(
  begin: () => Promise<Begun>,
  serveReads: (stack: AsyncDisposableStack) => Promise<void>,
  { stack, log }: { readonly stack: AsyncDisposableStack; readonly log: Log },
): Promise<Begun | undefined> {
  try {
    return await begin();
  } catch (error) {
    if (!isFullDisk(error)) throw error;
    const reason = errorMessage(error);
    log("error", "The disk is full: the service only reads until there is room", { reason });
  }
  const reading = stack.use(new AsyncDisposableStack());
  await serveReads(reading);
  const stopped = new AbortController();
  const { signal } = stopped;
  const isBegun = async () => {
    await delay(retryMs, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted) return true;
    try {
      await begin();
      log("info", "The disk has room again: the service continues");
      await reading.disposeAsync();
      return true;
    } catch (error) {
      if (!isFullDisk(error)) log("error", "The service cannot continue", { error });
      return false;
    }
  };
  const waiting = (async () => {
    while (!(await isBegun())) continue;
  })();
  stack.defer(async () => {
    stopped.abort();
    await waiting;
  });
  return undefined;
}
