import type { JobStatus } from "../contract/jobs/status.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { truncate } from "../contract/text/truncate.ts";

export interface JobProgress {
  readonly label: string;
  readonly status: JobStatus;
  readonly fraction: number;
  readonly message: string;
}

const barWidth = 16;
/** Narrower terminals show no bar. */
const minColumnsOfBar = 60;

/** One line for each job, or one for all of them where the terminal has too few rows. */
export function statusLines(jobs: readonly JobProgress[], columns: number, rows: number): string[] {
  if (jobs.length === 0) return [];
  const lines =
    jobs.length < rows ? jobs.map((job) => jobLine(job, jobs, columns)) : [summaryLine(jobs)];
  // The last column stays free: terminals differ in where the cursor is after writing to it.
  return lines.map((line) => truncate(line, Math.max(1, columns - 1)));
}

function jobLine(job: JobProgress, all: readonly JobProgress[], columns: number): string {
  const label = job.label.padEnd(Math.max(...all.map((other) => other.label.length)));
  const percent = `${Math.floor(job.fraction * 100)}%`.padStart(4);
  const done = Math.round(job.fraction * barWidth);
  const bar = `[${"#".repeat(done)}${"-".repeat(barWidth - done)}] `;
  const shownBar = columns < minColumnsOfBar ? "" : bar;
  return `${label} ${shownBar}${percent} ${job.status.padEnd(10)} ${job.message}`.trimEnd();
}

function summaryLine(jobs: readonly JobProgress[]): string {
  const mean = jobs.reduce((sum, job) => sum + job.fraction, 0) / jobs.length;
  const completed = jobs.filter((job) => job.status === "Completed").length;
  return `${Math.floor(mean * 100)}%, ${completed} of ${formatCount(jobs.length, "job")} completed`;
}
