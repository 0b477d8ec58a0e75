import type { Log } from "../log/json-log.ts";

interface Purgeable {
  purge(): Promise<unknown>;
}

/** After the start, which has other work. */
const firstMs = 60_000;
const intervalMs = 3_600_000;

interface PurgeOptions {
  /** Of several replicas one purges. */
  readonly isLeader: () => boolean;
  readonly log: Log;
}

/** Deletes what has expired, every hour. What cannot be deleted now is tried again in an hour. */
export function purgeRegularly(
  parts: Readonly<Record<string, Purgeable>>,
  { isLeader, log }: PurgeOptions,
): Disposable {
  const purge = async (name: string, part: Purgeable) => {
    try {
      await part.purge();
    } catch (error) {
      log("error", "What has expired could not be deleted", { part: name, error });
    }
  };
  const purgeAll = () => {
    if (!isLeader()) return;
    for (const [name, part] of Object.entries(parts)) void purge(name, part);
  };
  const first = setTimeout(purgeAll, firstMs);
  const timer = setInterval(purgeAll, intervalMs);
  return {
    [Symbol.dispose]() {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}
