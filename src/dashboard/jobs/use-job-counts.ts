import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { limits } from "../../contract/limits.ts";
import { type JobStatus, jobStatus } from "../../contract/jobs/status.ts";
import { watchChanges } from "../live/service-changes.ts";
import { service } from "../session/service.ts";
import type { JobFilters } from "./job-filters.ts";

type JobCounts = Readonly<Record<JobStatus, number>>;

/** At most so often are jobs counted again, milliseconds. */
const pauseMs = 2000;

/** How many jobs are in each status, whichever the list shows; undefined until it is known. */
export function useJobCounts({ target, model, batch, label }: JobFilters): JobCounts | undefined {
  const counts = useSignal<JobCounts | undefined>(undefined);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const count = async () => {
      timer = undefined;
      const query = { target, model, batch, label: [...label] };
      const answer = await service.call("countJobs", { query }).catch(() => undefined);
      if (answer !== undefined) counts.value = answer.counts;
    };
    const stop = watchChanges(({ job, deletedJob }) => {
      if (job !== undefined || deletedJob !== undefined)
        timer ??= setTimeout(() => void count(), pauseMs);
    });
    void count();
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [target, model, batch, label.join()]);
  return counts.value;
}

/** How many jobs are in some statuses, or in any where none is named. */
export function formatJobCount(counts: JobCounts, statuses: readonly JobStatus[]): string {
  const counted = (statuses.length === 0 ? jobStatus.options : statuses).map(
    (status) => counts[status],
  );
  const total = counted.reduce((sum, count) => sum + count, 0);
  const isLeast = counted.some((count) => count >= limits.countedJobs);
  return `${total.toLocaleString("en")}${isLeast ? "+" : ""}`;
}
