import { explainInTitle, nameCause } from "./explain-job.ts";
import { toOneLine } from "./markdown.ts";
import {
  classifyOutcome,
  isEndedRow,
  type Outcome,
  outcomes,
  type Report,
  type ReportRow,
} from "./report.ts";
import type { FailOn, JobChecks } from "../contract/batches/action.ts";
import { formatCount } from "../contract/text/format-count.ts";

/** The outcomes of jobs that fail the batch as a whole. */
const failingOutcomes: Record<FailOn, readonly Outcome[]> = {
  gates: ["failed", "missed"],
  warnings: ["failed", "missed", "warned"],
  jobs: ["failed"],
  nothing: [],
};

/** Outcomes that the title counts, the worst first. */
const badOutcomes = ["failed", "missed", "cancelled", "warned"] as const;

/** Conclusions of check runs, as GitHub names them. */
export type Conclusion = "success" | "failure" | "neutral" | "cancelled" | "timed_out";

export interface Verdict {
  /** Null while jobs run. */
  readonly conclusion: Conclusion | null;
  /** The result in a few words. */
  readonly title: string;
}

interface AbortVerdict {
  readonly conclusion: Conclusion;
  readonly words: string;
  /** What comes next. */
  readonly advice: string;
}

const abortVerdicts: Record<NonNullable<Report["abortReason"]>, AbortVerdict> = {
  cancelled: {
    conclusion: "cancelled",
    words: "Cancelled with its workflow run",
    advice:
      "Somebody cancelled the workflow run, or a newer push did. Where there is no newer run, start " +
      "this one again.",
  },
  timed_out: {
    conclusion: "timed_out",
    words: "Out of time",
    advice: "Give the step more time with `timeout`; jobs that ended are kept.",
  },
  unreachable: {
    conclusion: "failure",
    words: "Infrastructure: the service cannot be reached",
    advice:
      "This says nothing about the models. Run the workflow again when the service answers; where it " +
      "stays away, ask its administrator.",
  },
  error: {
    conclusion: "failure",
    words: "The batch could not be run",
    advice: "Correct what the message names, in the workflow or its files, and push again.",
  },
};

/** What a check that neither passed nor failed means for the pull request. */
export const mergeNotes: Readonly<Partial<Record<Conclusion, string>>> = {
  neutral: "This check does not block merging.",
  cancelled: "Where this check is required, merging waits until it passes.",
};

/** What comes next where a batch ended before all jobs did. */
export function abortAdvice(reason: keyof typeof abortVerdicts): string {
  return abortVerdicts[reason].advice;
}

/** The verdict on the batch as a whole. */
export function conclude(
  { rows, abortReason, failureMessage }: Pick<Report, "rows" | "abortReason" | "failureMessage">,
  failOn: FailOn,
): Verdict {
  const counts = countOutcomes(rows);
  const ended = `${rows.length - counts.open} of ${formatCount(rows.length, "job")} ended`;
  if (abortReason) {
    const { conclusion, words } = abortVerdicts[abortReason];
    if (rows.length > 0) return { conclusion, title: `${words}, ${ended}` };
    const [cause] = failureMessage?.split("\n") ?? [];
    const isNamed = abortReason === "error" && cause !== undefined;
    return { conclusion, title: isNamed ? toOneLine(`${words}: ${cause}`) : words };
  }
  if (counts.open > 0) return { conclusion: null, title: ended };
  const bad = badOutcomes.filter((outcome) => counts[outcome] > 0);
  return { conclusion: concludeEnded(bad, failOn), title: describeEnded(rows, counts, bad) };
}

function concludeEnded(bad: readonly Outcome[], failOn: FailOn): Conclusion {
  if (bad.some((outcome) => failingOutcomes[failOn].includes(outcome))) return "failure";
  if (bad.includes("cancelled") && failOn !== "nothing") return "cancelled";
  return bad.length > 0 ? "neutral" : "success";
}

function describeEnded(
  rows: Report["rows"],
  counts: Record<Outcome, number>,
  bad: readonly Outcome[],
): string {
  const jobs = formatCount(rows.length, "job");
  if (bad.length === 0)
    return `${jobs} ${outcomes[counts.planned > 0 ? "planned" : "passed"].words}`;
  const shown = rows.filter((row) => bad.includes(classifyOutcome(row)));
  const [only] = shown;
  if (only && isEndedRow(only) && shown.length === 1) return explainInTitle(only);
  const parts = bad.map((outcome, i) => {
    const { words } = outcomes[outcome];
    if (i > 0) return `${counts[outcome]} ${words}`;
    return rows.length === 1 ? `${jobs} ${words}` : `${counts[outcome]} of ${jobs} ${words}`;
  });
  const cause = bad.length === 1 ? findCommonCause(shown) : undefined;
  return cause === undefined ? parts.join(", ") : `${parts.join(", ")}: ${toOneLine(cause)}`;
}

/** A longer one is beside each job. */
const longestCause = 120;

/** Why all the jobs did not pass, where the first reason of each is the same. */
function findCommonCause(rows: readonly ReportRow[]): string | undefined {
  const causes = new Set(rows.map(({ job }) => job && nameCause(job)));
  const [cause = ""] = causes;
  return causes.size === 1 && cause !== "" && cause.length <= longestCause ? cause : undefined;
}

export function countOutcomes(rows: Report["rows"]): Record<Outcome, number> {
  const counts = { passed: 0, planned: 0, warned: 0, missed: 0, failed: 0, cancelled: 0, open: 0 };
  for (const row of rows) counts[classifyOutcome(row)]++;
  return counts;
}

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
