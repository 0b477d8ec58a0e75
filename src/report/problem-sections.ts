import type { Section } from "./compose-sections.ts";
import { describeJobFailure } from "./describe-job-failure.ts";
import { inlineCode } from "./markdown.ts";
import { classifyOutcome, outcomes } from "./outcome.ts";
import type { ReportRow } from "./report.ts";

/** The table below has the others. */
const maxProblems = 50;

/** The jobs that did not pass, with the reasons. */
export function problemSections(rows: readonly ReportRow[]): Section[] {
  const lines = rows.flatMap((row) => {
    const failure = row.job && describeJobFailure(row.job);
    return failure ? problemLine(row, failure) : [];
  });
  if (lines.length === 0) return [];
  const omitted = lines.length - maxProblems;
  const foot = omitted > 0 ? `\n- ${omitted} more in the table` : "";
  return [{ head: "### What went wrong\n", rows: lines.slice(0, maxProblems), foot }];
}

function problemLine(row: ReportRow, failure: string): string {
  const { mark } = outcomes[classifyOutcome(row)];
  const title = `${inlineCode(row.model)} for ${inlineCode(row.target)}`;
  return `- ${mark} ${title}: ${inlineCode(failure)} ([log](${row.logUrl}))`;
}
