import type { Report } from "./report.ts";

export type Conclusion = "success" | "failure" | "neutral" | "cancelled" | "timed_out";

/** What came of a batch that has ended, as GitHub names it. */
export function conclude({ jobs }: Pick<Report, "jobs">): Conclusion {
  const hasFailed = jobs.some(({ status, gates }) => status === "Failed" || gates.some(({ passed }) => !passed));
  if (hasFailed) return "failure";
  return jobs.some(({ status }) => status === "Cancelled") ? "cancelled" : "success";
}
