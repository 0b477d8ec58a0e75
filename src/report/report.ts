import type { Job } from "../contract/jobs/job.ts";
import { isTerminal, type JobStatus } from "../contract/jobs/status.ts";
import { changesAddress, jobAddress } from "../contract/page-addresses.ts";

/** One job of a report. */
export interface ReportRow {
  readonly id: string;
  readonly model: string;
  readonly target: string;
  readonly status: JobStatus;
  /** Whether a gate of the level `fail` did not pass. */
  readonly gatesFailed: boolean;
  /** The job's page. */
  readonly url: string;
  /** Where it is shown what changed in the model. */
  readonly changesUrl: string;
  /** Where that page has the job's whole output. */
  readonly logUrl: string;
  /** Absent until the job has ended. */
  readonly job?: Job | undefined;
}

/** Addresses of a job's page at a service whose own address has no `/v1`. */
export function jobLinks(
  serviceUrl: string,
  id: string,
): Pick<ReportRow, "url" | "changesUrl" | "logUrl"> {
  return {
    url: `${serviceUrl}${jobAddress(id)}`,
    changesUrl: `${serviceUrl}${changesAddress(id)}`,
    logUrl: `${serviceUrl}${jobAddress(id, "log")}`,
  };
}

/** A batch, or what a step submitted, at one moment. */
export interface Report {
  readonly name: string;
  /** The page that has all of it. */
  readonly url: string;
  /** In the order of models × targets. */
  readonly rows: readonly ReportRow[];
  /** Why it ended before all jobs did. */
  readonly abortReason?: "cancelled" | "timed_out" | "unreachable" | "error" | undefined;
  /** What failed besides the jobs. */
  readonly failureMessage?: string | undefined;
}

/** What a check run shows, each part within GitHub's limit. */
export interface CheckOutput {
  readonly title: string;
  readonly summary: string;
  readonly text: string;
}

/** The row of a job that has ended. */
export type EndedRow = ReportRow & { readonly job: Job };

export function isEndedRow(row: ReportRow): row is EndedRow {
  return row.job !== undefined;
}

/** The outcomes of a job, with their marks and words in reports. */
export const outcomes = {
  passed: { mark: "✅", words: "passed" },
  planned: { mark: "📋", words: "planned" },
  warned: { mark: "⚠️", words: "passed with a warning" },
  missed: { mark: "❌", words: "failed a gate" },
  failed: { mark: "❌", words: "failed" },
  cancelled: { mark: "⛔", words: "cancelled" },
  open: { mark: "⏳", words: "not ended" },
} as const;

export type Outcome = keyof typeof outcomes;

export function classifyOutcome({ status, gatesFailed, job }: ReportRow): Outcome {
  if (!isTerminal(status)) return "open";
  if (status === "Failed") return "failed";
  if (status === "Cancelled") return "cancelled";
  if (job?.dryRun === true) return "planned";
  if (gatesFailed) return "missed";
  return job?.gates.some(({ passed }) => !passed) ? "warned" : "passed";
}

/** What reports and logs call a job. */
export function jobTitle({ model, target }: Pick<ReportRow, "model" | "target">): string {
  return `${model} for ${target}`;
}
