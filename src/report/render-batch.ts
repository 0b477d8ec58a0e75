import { composeSections, type Section } from "./compose-sections.ts";
import { countOutcomes, type Verdict } from "./conclude.ts";
import { detailSections } from "./detail-sections.ts";
import { githubLimits } from "./github-limits.ts";
import { codeBlock, inlineCode, truncateToBytes } from "./markdown.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { problemSections } from "./problem-sections.ts";
import { ratioCharts } from "./ratio-charts.ts";
import type { CheckOutput, Report } from "./report.ts";

const maxFailureMessageBytes = 4_000;

/** The batch in the summary of a workflow's job. */
export function renderJobSummary(report: Report, verdict: Verdict): string {
  const sections = [
    headlineSection(report, verdict, `## ${inlineCode(report.name)}\n\n`),
    ...problemSections(report.rows),
    ...detailSections(report.rows),
    ...ratioCharts(report.rows),
  ];
  return composeSections(sections, { url: report.url, maxBytes: githubLimits.jobSummaryBytes });
}

/** The check run of the batch. */
export function renderBatchCheck(report: Report, verdict: Verdict): CheckOutput {
  const sections = [
    headlineSection(report, verdict, ""),
    ...problemSections(report.rows),
    ...ratioCharts(report.rows),
  ];
  const limits = { url: report.url, maxBytes: githubLimits.checkFieldBytes };
  return {
    title: truncateToBytes(verdict.title, githubLimits.checkTitleBytes),
    summary: composeSections(sections, limits),
    text: composeSections(detailSections(report.rows), limits),
  };
}

/** The batch in a comment on a pull request, which starts with the marker. */
export function renderComment(report: Report, verdict: Verdict, marker: string): string {
  const sections = [
    headlineSection(report, verdict, `${marker}\n### ${inlineCode(report.name)}\n\n`),
    ...problemSections(report.rows),
    ...detailSections(report.rows),
  ];
  return composeSections(sections, { url: report.url, maxBytes: githubLimits.commentBytes });
}

function headlineSection(
  { url, rows, failureMessage }: Report,
  { title }: Verdict,
  before: string,
): Section {
  const parts = [`${before}**${title}** · [details](${url})`, outcomeCounts(rows)];
  if (failureMessage !== undefined) {
    const message = truncateToBytes(failureMessage, maxFailureMessageBytes);
    parts.push(codeBlock(message.split("\n")));
  }
  return { head: parts.filter((part) => part !== "").join("\n\n"), rows: [] };
}

function outcomeCounts(rows: Report["rows"]): string {
  const counts = countOutcomes(rows);
  const present = (Object.keys(outcomes) as Outcome[]).filter((outcome) => counts[outcome] > 0);
  const parts = present.map((outcome) => {
    const { mark, words } = outcomes[outcome];
    return `${mark} ${counts[outcome]} ${words}`;
  });
  return parts.join(" · ");
}
