import type { FailOn } from "../contract/action.ts";
import { type Outcome, classifyOutcome, outcomes } from "./outcome.ts";
import type { Report } from "./report.ts";

/** The outcomes of jobs that let the batch fail as a whole. */
const failingOutcomes: Record<FailOn, readonly Outcome[]> = {
  gates: ["failed", "missed"],
  warnings: ["failed", "missed", "warned"],
  jobs: ["failed"],
  nothing: [],
};

/** Conclusions of check runs, as GitHub names them. */
export type Conclusion = "success" | "failure" | "neutral" | "cancelled" | "timed_out";

export interface Verdict {
  /** Null while jobs are at work. */
  readonly conclusion: Conclusion | null;
  /** In a few words. */
  readonly title: string;
}

/** How a batch ends that was broken off. */
const abortVerdicts: Record<
  NonNullable<Report["abortReason"]>,
  { conclusion: Conclusion; words: string }
> = {
  cancelled: { conclusion: "cancelled", words: "Cancelled" },
  timed_out: { conclusion: "timed_out", words: "Out of time" },
  unreachable: { conclusion: "failure", words: "Infrastructure: the service cannot be reached" },
  error: { conclusion: "failure", words: "The batch could not be run" },
};

/** What came of the batch as a whole. */
export function conclude(
  { rows, abortReason }: Pick<Report, "rows" | "abortReason">,
  failOn: FailOn,
): Verdict {
  const counts = countOutcomes(rows);
  const jobs = rows.length === 1 ? "1 job" : `${rows.length} jobs`;
  const ended = `${rows.length - counts.open} of ${jobs} ended`;
  if (abortReason) {
    const { conclusion, words } = abortVerdicts[abortReason];
    return { conclusion, title: rows.length === 0 ? words : `${words}, ${ended}` };
  }
  if (counts.open > 0) return { conclusion: null, title: ended };
  const bad = (["failed", "missed", "cancelled", "warned"] as const).filter(
    (outcome) => counts[outcome] > 0,
  );
  const parts = bad.map((outcome, i) => {
    const { words } = outcomes[outcome];
    if (i > 0) return `${counts[outcome]} ${words}`;
    return rows.length === 1 ? `${jobs} ${words}` : `${counts[outcome]} of ${jobs} ${words}`;
  });
  const title = parts.length === 0 ? `${jobs} passed` : parts.join(", ");
  if (bad.some((outcome) => failingOutcomes[failOn].includes(outcome)))
    return { conclusion: "failure", title };
  if (counts.cancelled > 0) return { conclusion: "cancelled", title };
  return { conclusion: bad.length > 0 ? "neutral" : "success", title };
}

export function countOutcomes(rows: Report["rows"]): Record<Outcome, number> {
  const counts = { passed: 0, warned: 0, missed: 0, failed: 0, cancelled: 0, open: 0 };
  for (const row of rows) counts[classifyOutcome(row)]++;
  return counts;
}
