import type { Job } from "../contract/job.ts";
import type { JobStatus } from "../contract/status.ts";

/** One job of a report. */
export interface ReportRow {
  readonly id: string;
  readonly model: string;
  readonly target: string;
  readonly status: JobStatus;
  /** Whether a gate that lets the job fail did not pass. */
  readonly gatesFailed: boolean;
  /** Where the job's whole output can be read. */
  readonly logUrl: string;
  /** Absent until the job has ended. */
  readonly job?: Job;
}

/** What reports are made of. */
export interface Report {
  readonly name: string;
  /** Where all of it can be read. */
  readonly url: string;
  /** In the order of models × targets. */
  readonly rows: readonly ReportRow[];
  /** Why it is over, where that is not because all jobs have ended. */
  readonly abortReason?: "cancelled" | "timed_out" | "unreachable" | "error";
  /** What went wrong besides the jobs. */
  readonly failureMessage?: string;
}

/** What a check run shows, each part within GitHub's limit. */
export interface CheckOutput {
  readonly title: string;
  readonly summary: string;
  readonly text: string;
}
