import { conclude } from "../report/conclude.ts";
import type { EndedRow } from "../report/ended-row.ts";
import { jobTitle } from "../report/job-title.ts";
import { renderJobCheck } from "../report/render-job.ts";
import type { CheckRunContent } from "./check-run-requests.ts";

interface JobCheckOptions {
  /** Name of the check run of the whole batch. */
  readonly checkName: string;
  readonly failOn: Parameters<typeof conclude>[1];
}

/** The check run of a job that has ended, with the last lines of its output. */
export function jobCheckRun(
  row: EndedRow,
  lastLines: readonly string[],
  { checkName, failOn }: JobCheckOptions,
): { name: string; content: CheckRunContent } {
  const { conclusion } = conclude({ rows: [row] }, failOn);
  return {
    name: `${checkName}: ${jobTitle(row)}`,
    content: { output: renderJobCheck(row, lastLines), conclusion: conclusion ?? "neutral" },
  };
}
