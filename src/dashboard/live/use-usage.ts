import { useLive } from "./use-live.ts";
import { service } from "../session/service.ts";

/** How much of its quotas the project uses. */
export function useUsage() {
  return useLive(() => service.call("getUsage", {}), {
    concerns: ({ job, deletedJob }) => job !== undefined || deletedJob !== undefined,
    pauseMs: 1000,
    everyMs: 10_000,
  });
}
