import { limits } from "../../contract/limits.ts";

const waitPattern = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i;

/**
 * Seconds of `wait=N` in a Prefer header, at most those that the service waits; undefined where the
 * header does not ask to wait.
 */
export function readPreferredWait(prefer: string | undefined): number | undefined {
  const [, seconds] = waitPattern.exec(prefer ?? "") ?? [];
  return seconds === undefined ? undefined : Math.min(Number(seconds), limits.preferWaitSeconds);
}
