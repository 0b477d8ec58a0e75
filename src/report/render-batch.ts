import { hasFailedGate } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import { composeSections, type Section } from "./compose-sections.ts";
import { countOutcomes, type Verdict } from "./conclude.ts";
import { figures, describeJobFailure } from "./figures.ts";
import { githubLimits } from "./github-limits.ts";
import { inlineCode, codeBlock, truncateToBytes, tableHead, tableRow } from "./markdown.ts";
import { type Outcome, classifyOutcome, outcomes } from "./outcome.ts";
import { ratioCharts } from "./ratio-charts.ts";
import type { CheckOutput, Report, ReportRow } from "./report.ts";

/** Problems that are told above the table; it has all of them. */
const maxProblems = 50;
const maxBaselines = 5;
const maxFailureMessageBytes = 4_000;
const none = "–";

/** The batch for the summary of a workflow's job. */
export function renderJobSummary(report: Report, verdict: Verdict): string {
  const sections = [
    headlineSection(report, verdict, `## ${inlineCode(report.name)}\n\n`),
    ...problemSections(report),
    ...detailSections(report),
  ];
  return composeSections([...sections, ...ratioCharts(report.rows)], {
    ...report,
    maxBytes: githubLimits.jobSummaryBytes,
  });
}

/** The batch for its check run. */
export function renderBatchCheck(report: Report, verdict: Verdict): CheckOutput {
  const sections = [
    headlineSection(report, verdict, ""),
    ...problemSections(report),
    ...ratioCharts(report.rows),
  ];
  const bounds = { ...report, maxBytes: githubLimits.checkFieldBytes };
  return {
    title: truncateToBytes(verdict.title, githubLimits.checkTitleBytes),
    summary: composeSections(sections, bounds),
    text: composeSections(detailSections(report), bounds),
  };
}

/** The batch for a comment on a pull request. */
export function renderComment(report: Report, verdict: Verdict, marker: string): string {
  const sections = [
    headlineSection(report, verdict, `${marker}\n### ${inlineCode(report.name)}\n\n`),
    ...problemSections(report),
  ];
  return composeSections([...sections, ...detailSections(report)], {
    ...report,
    maxBytes: githubLimits.commentBytes,
  });
}

function headlineSection(
  { url, rows, failureMessage }: Report,
  { title }: Verdict,
  before: string,
): Section {
  const counts = countOutcomes(rows);
  const presentOutcomes = (Object.keys(outcomes) as Outcome[]).filter(
    (outcome) => counts[outcome] > 0,
  );
  const marks = presentOutcomes.map(
    (outcome) => `${outcomes[outcome].mark} ${counts[outcome]} ${outcomes[outcome].words}`,
  );
  const reason =
    failureMessage === undefined
      ? []
      : [codeBlock(truncateToBytes(failureMessage, maxFailureMessageBytes).split("\n"))];
  const parts = [`${before}**${title}** · [details](${url})`, marks.join(" · "), ...reason];
  return { head: parts.filter((part) => part !== "").join("\n\n"), rows: [] };
}

function problemSections({ rows }: Report): Section[] {
  const lines = rows.flatMap((row) => {
    const failure = row.job && describeJobFailure(row.job);
    if (!failure) return [];
    const { mark } = outcomes[classifyOutcome(row)];
    return `- ${mark} ${inlineCode(row.model)} for ${inlineCode(row.target)}: ${inlineCode(failure)} ([log](${row.logUrl}))`;
  });
  if (lines.length === 0) return [];
  const left = lines.length - maxProblems;
  const foot = left > 0 ? `\n- ${left} more in the table` : "";
  return [{ head: "### What went wrong\n", rows: lines.slice(0, maxProblems), foot }];
}

function detailSections(report: Report): Section[] {
  return report.rows.length === 0
    ? []
    : [...ratioMatrixSections(report), jobsTable(report), ...noteSections(report)];
}

/** Models × targets at a glance, where there are several of both. */
function ratioMatrixSections({ rows }: Report): Section[] {
  const targets = [...new Set(rows.map(({ target }) => target))];
  const byModel = Map.groupBy(rows, ({ model }) => model);
  if (targets.length < 2 || byModel.size < 2) return [];
  const lines = [...byModel].map(([model, ofModel]) => {
    const cells = targets.map((target) => {
      const row = ofModel.find((one) => one.target === target);
      return row ? `${outcomes[classifyOutcome(row)].mark} ${formatRatio(row)}`.trimEnd() : none;
    });
    return tableRow([inlineCode(model), ...cells]);
  });
  return [
    { head: `### Size ratios\n\n${tableHead(["model", ...targets.map(inlineCode)])}`, rows: lines },
  ];
}

function formatRatio({ job }: ReportRow): string {
  return job?.telemetry.size?.ratio.toFixed(2) ?? "";
}

function jobsTable({ rows }: Report): Section {
  const head = tableHead(["model", "target", "status", ...Object.keys(figures), "gates"]);
  return { head: `### Jobs\n\n${head}`, rows: rows.map(jobTableRow) };
}

function jobTableRow(row: ReportRow): string {
  const { job } = row;
  const measured = Object.values(figures).map((figure) => (job && figure(job)) ?? none);
  const status = `${outcomes[classifyOutcome(row)].mark} ${row.status}${job?.error ? `: ${job.error.code}` : ""}`;
  return tableRow([
    inlineCode(row.model),
    inlineCode(row.target),
    status,
    ...measured,
    gatesCell(job),
  ]);
}

function gatesCell(job: ReportRow["job"]): string {
  if (!job || job.gates.length === 0) return none;
  const failed = job.gates.filter(({ passed }) => !passed).length;
  const kind = hasFailedGate(job.gates) ? "failed" : "warned";
  return failed === 0 ? `${job.gates.length} passed` : `${failed} of ${job.gates.length} ${kind}`;
}

function noteSections({ rows }: Report): Section[] {
  const jobs = rows.flatMap(({ job }) => job ?? []);
  const warnings = jobs.flatMap(({ telemetry }) => telemetry.warnings);
  const byText = Map.groupBy(warnings, ({ code: kind, message }) => `${kind}: ${message}`);
  const lines = [...baselineNotes(jobs)];
  lines.push(
    ...[...byText].map(
      ([text, all]) => `- ⚠️ ${inlineCode(text)}${all.length > 1 ? ` (${all.length} jobs)` : ""}`,
    ),
  );
  const isGenerated = jobs.some(({ telemetry }) => telemetry.accuracy?.data === "generated");
  if (isGenerated)
    lines.push(
      "- Accuracy on generated samples shows gross damage only; give samples as `recipe.evaluation.data`.",
    );
  return lines.length === 0 ? [] : [{ head: "### Notes\n", rows: lines }];
}

/** What the jobs are compared with. */
function baselineNotes(jobs: readonly Job[]): string[] {
  const baselines = jobs.flatMap(({ baseline }) => baseline ?? []);
  if (baselines.length === 0) return [];
  const commits = new Set(baselines.map(({ branch, sha }) => `${branch} at ${sha.slice(0, 7)}`));
  const left = jobs.length - baselines.length;
  const without = left === 0 ? "" : `; ${left} of ${jobs.length} jobs have no baseline`;
  return [
    `- ▲ and ▼ compare with ${[...commits].slice(0, maxBaselines).map(inlineCode).join(", ")}${without}.`,
  ];
}
