import type { JobChecks } from "../contract/jobs/action.ts";
import { classifyOutcome } from "./outcome.ts";
import type { ReportRow } from "./report.ts";

/** In a batch of at most so many jobs, `auto` stands for `all`. */
const fewJobs = 12;
/** Per batch, as GitHub takes 500 writes an hour. */
export const maxJobChecks = 100;

/** Whether a job that has ended gets a check run of its own. */
export function isJobCheckWanted(
  row: ReportRow,
  { jobChecks, jobCount }: { jobChecks: JobChecks; jobCount: number },
): boolean {
  const isBad = ["failed", "missed"].includes(classifyOutcome(row));
  switch (jobChecks) {
    case "auto":
      return isBad || jobCount <= fewJobs;
    case "all":
      return true;
    case "failed":
      return isBad;
    case "none":
      return false;
  }
}
