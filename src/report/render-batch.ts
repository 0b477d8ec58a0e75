import { composeSections, foldSection, type Section } from "./compose-sections.ts";
import { abortAdvice, countOutcomes, mergeNotes, type Verdict } from "./conclude.ts";
import { explainInMarkdown } from "./explain-job.ts";
import { knownRatio } from "./figures.ts";
import {
  bold,
  codeBlock,
  githubLimits,
  inlineCode,
  mermaidLabel,
  truncateToBytes,
} from "./markdown.ts";
import {
  type CheckOutput,
  classifyOutcome,
  type Outcome,
  outcomes,
  type Report,
  type ReportRow,
} from "./report.ts";
import { detailSections, jobSections } from "./sections.ts";
import { nextStep } from "../contract/jobs/next-steps.ts";

const maxFailureMessageBytes = 4_000;

/** The batch in the summary of a workflow's job. */
export function renderJobSummary(report: Report, verdict: Verdict): string {
  const sections = [
    headlineSection(report, verdict, `## ${inlineCode(report.name)}\n\n${bold(verdict.title)} · `),
    ...firstLook(report),
    ...detailSections(report.rows),
    ...ratioCharts(report.rows),
  ];
  return composeSections(sections, { url: report.url, maxBytes: githubLimits.jobSummaryBytes });
}

/** The check run of the batch, whose title has the verdict. */
export function renderBatchCheck(report: Report, verdict: Verdict): CheckOutput {
  const sections = [headlineSection(report, verdict, ""), ...firstLook(report)];
  const details = [...detailSections(report.rows), ...ratioCharts(report.rows)];
  const limits = { url: report.url, maxBytes: githubLimits.checkFieldBytes };
  return {
    title: truncateToBytes(verdict.title, githubLimits.checkTitleBytes),
    summary: composeSections(sections, limits),
    text: composeSections(details, limits),
  };
}

interface CommentOptions {
  /** What the comment starts with. */
  readonly marker: string;
  /** The commit that the batch is of: a later one may be there already. */
  readonly sha: string;
}

/** The batch in a comment on a pull request. */
export function renderComment(
  report: Report,
  verdict: Verdict,
  { marker, sha }: CommentOptions,
): string {
  const title = `### ${inlineCode(report.name)}\n\n${bold(verdict.title)} · ${sha.slice(0, 7)} · `;
  const sections = [
    headlineSection(report, verdict, `${marker}\n${title}`),
    ...firstLook(report),
    ...detailSections(report.rows),
  ];
  return composeSections(sections, { url: report.url, maxBytes: githubLimits.commentBytes });
}

/** What went wrong, what to do about it, and the table of all jobs. */
function firstLook(report: Report): Section[] {
  const { rows } = report;
  return [...problemSections(rows), ...nextSections(report), ...jobSections(report)];
}

function headlineSection(
  { url, rows, failureMessage }: Report,
  { conclusion }: Verdict,
  before: string,
): Section {
  // Where nothing was compressed there may be no check run, for which a required check waits.
  const isNothing = conclusion === "neutral" && rows.length === 0;
  const note = conclusion === null || isNothing ? undefined : mergeNotes[conclusion];
  const link = `${before}[details](${url})`;
  const parts = [note === undefined ? link : `${link} · ${note}`, outcomeCounts(rows)];
  if (failureMessage !== undefined) {
    const message = truncateToBytes(failureMessage, maxFailureMessageBytes);
    parts.push(codeBlock(message.split("\n")));
  }
  return { head: parts.filter((part) => part !== "").join("\n\n"), rows: [] };
}

/** Empty where all jobs ended alike, which the title says. */
function outcomeCounts(rows: Report["rows"]): string {
  const counts = countOutcomes(rows);
  const present = (Object.keys(outcomes) as Outcome[]).filter((outcome) => counts[outcome] > 0);
  if (present.length < 2) return "";
  const parts = present.map((outcome) => {
    const { mark, words } = outcomes[outcome];
    return `${mark} ${counts[outcome]} ${words}`;
  });
  return parts.join(" · ");
}

/** The table below has the others. */
const maxProblems = 50;

/** The jobs that did not pass, with the reasons. */
function problemSections(rows: readonly ReportRow[]): Section[] {
  const lines = rows.flatMap((row) => {
    const reasons = explainInMarkdown(row);
    return reasons === undefined ? [] : problemLine(row, reasons);
  });
  if (lines.length === 0) return [];
  const omitted = lines.length - maxProblems;
  const foot = omitted > 0 ? `\n- ${omitted} more in the table` : "";
  const [first = "", ...others] = lines.slice(0, maxProblems);
  return [{ head: first, rows: others, foot }];
}

function problemLine(row: ReportRow, reasons: string): string {
  const { mark } = outcomes[classifyOutcome(row)];
  const changes = row.job?.telemetry.modelDiff ? `, [what changed](${row.changesUrl})` : "";
  return `- ${mark} ${reasons} ([job](${row.url})${changes}, [log](${row.logUrl}))`;
}

const maxSteps = 3;
const maxNames = 3;

/** What to do next, each step with the jobs that it is for where there are several. */
function nextSections({ rows, abortReason }: Report): Section[] {
  const steps = Map.groupBy(rows, ({ job }) => job && nextStep(job));
  const named = [...steps].flatMap(([step, ofStep]) =>
    step === undefined ? [] : { step, names: nameJobs(ofStep) },
  );
  const all = abortReason ? [{ step: abortAdvice(abortReason), names: "" }, ...named] : named;
  const [first, ...others] = all.slice(0, maxSteps);
  if (first === undefined) return [];
  if (others.length === 0) return [{ head: `**Next:** ${first.step}`, rows: [] }];
  const lines = [first, ...others].map(({ step, names }) => `\n- ${names}${step}`);
  return [{ head: `**Next:**\n${lines.join("")}`, rows: [] }];
}

function nameJobs(rows: readonly ReportRow[]): string {
  const names = rows
    .slice(0, maxNames)
    .map(({ model, target }) => `${inlineCode(model)} for ${inlineCode(target)}`);
  const more = rows.length > maxNames ? ` and ${rows.length - maxNames} more` : "";
  return `${names.join(", ")}${more}: `;
}

const maxBars = 16;

/** Bar charts of sizes and latencies relative to the original's, in Mermaid. */
function ratioCharts(rows: readonly ReportRow[]): Section[] {
  return [
    ratioChart("Size of the result, original = 1", rows, ({ telemetry }) => telemetry.size?.ratio),
    ratioChart("Median latency of the result, original = 1", rows, ({ telemetry }) =>
      knownRatio(telemetry.latency),
    ),
  ].flatMap((section) => section ?? []);
}

function ratioChart(
  title: string,
  rows: readonly ReportRow[],
  measure: (job: NonNullable<ReportRow["job"]>) => number | undefined,
): Section | undefined {
  const bars = rows.flatMap(({ model, target, job }) => {
    const ratio = job && measure(job);
    return ratio === undefined ? [] : { label: `"${mermaidLabel(`${model} ${target}`)}"`, ratio };
  });
  if (bars.length < 2 || bars.length > maxBars) return undefined;
  const top = Math.max(1, ...bars.map(({ ratio }) => Math.ceil(ratio * 10) / 10));
  const lines = [
    "```mermaid",
    "xychart-beta horizontal",
    `  title "${title}"`,
    `  x-axis [${bars.map(({ label }) => label).join(", ")}]`,
    `  y-axis 0 --> ${top}`,
    `  bar [${bars.map(({ ratio }) => ratio.toFixed(3)).join(", ")}]`,
    "```",
  ];
  return foldSection(title, { head: lines.join("\n"), rows: [] });
}
