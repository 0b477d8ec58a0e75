import { foldSection, type Section } from "./compose-sections.ts";
import { figures } from "./figures.ts";
import { modelDiffSections } from "./model-diff-section.ts";
import { inlineCode, tableHead, tableRow } from "./markdown.ts";
import { classifyOutcome, outcomes, type Report, type ReportRow } from "./report.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isOnGenerated } from "../contract/jobs/next-steps.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { formatPercent } from "../contract/text/format-figure.ts";

const emptyCell = "–";

/** What is folded after the table of jobs. */
export function detailSections(rows: readonly ReportRow[]): Section[] {
  return [...ratioMatrixSections(rows), ...diffSections(rows), ...noteSections(rows)];
}

const maxDiffs = 10;

/** How models differ from their baselines', each once: targets have the same. */
function diffSections(rows: readonly ReportRow[]): Section[] {
  const byModel = Map.groupBy(rows, ({ model }) => model);
  const sections = [...byModel].flatMap(([model, ofModel]) => {
    const compared = ofModel.find(({ job }) => job?.telemetry.modelDiff !== undefined)?.job;
    return (compared ? modelDiffSections(compared) : []).map(({ head, ...rest }) => ({
      head: `${inlineCode(model)}:\n\n${head}`,
      ...rest,
    }));
  });
  return sections.slice(0, maxDiffs);
}

/** Models × targets, where there are several of both. */
function ratioMatrixSections(rows: readonly ReportRow[]): Section[] {
  const targets = [...new Set(rows.map(({ target }) => target))];
  const byModel = Map.groupBy(rows, ({ model }) => model);
  if (targets.length < 2 || byModel.size < 2) return [];
  const lines = [...byModel].map(([model, ofModel]) => {
    const cells = targets.map((target) => {
      const row = ofModel.find((one) => one.target === target);
      return row ? ratioCell(row) : emptyCell;
    });
    return tableRow([inlineCode(model), ...cells]);
  });
  const head = tableHead(["model", ...targets.map(inlineCode)]);
  return [foldSection("Sizes by model and target", { head, rows: lines })];
}

function ratioCell(row: ReportRow): string {
  const ratio = row.job?.telemetry.size?.ratio;
  const share = ratio === undefined ? "" : formatPercent(ratio, 0);
  return `${outcomes[classifyOutcome(row)].mark} ${share}`.trimEnd();
}

/** All jobs, with what their figures are compared with. */
export function jobSections({
  rows,
  abortReason,
}: Pick<Report, "rows" | "abortReason">): Section[] {
  if (rows.length === 0) return [];
  const head = tableHead(["model", "target", "result", ...Object.keys(figures), "gates"]);
  const foot = baselineNote(rows.flatMap(({ job }) => job ?? []));
  const isOver = abortReason !== undefined;
  return [{ head, rows: rows.map((row) => jobTableRow(row, isOver)), foot }];
}

function jobTableRow(row: ReportRow, isOver: boolean): string {
  const { model, target, job } = row;
  const measured = Object.values(figures).map((figure) => (job && figure(job)) ?? emptyCell);
  const cells = [inlineCode(model), inlineCode(target), statusCell(row, isOver), ...measured];
  return tableRow([...cells, gatesCell(job)]);
}

function statusCell(row: ReportRow, isOver: boolean): string {
  const outcome = classifyOutcome(row);
  const { mark, words } = outcomes[outcome];
  return `${mark} ${outcome === "open" && !isOver ? row.status : words}`;
}

function gatesCell(job: ReportRow["job"]): string {
  if (!job || job.gates.length === 0) return emptyCell;
  const missed = job.gates.filter(({ passed }) => !passed);
  if (missed.length === 0) return `${job.gates.length} passed`;
  const failed = missed.filter(({ level }) => level === "fail").length;
  const all = `of ${job.gates.length}`;
  if (failed === 0) return `${missed.length} ${all} warned`;
  const warned = missed.length - failed;
  return `${failed} ${all} failed${warned === 0 ? "" : `, ${warned} warned`}`;
}

const maxBaselines = 5;

/** Warnings and cautions that concern the jobs. */
function noteSections(rows: readonly ReportRow[]): Section[] {
  const jobs = rows.flatMap(({ job }) => job ?? []);
  const notes = [...warningNotes(jobs), ...accuracyNotes(jobs)];
  return notes.length === 0
    ? []
    : [foldSection("Notes", { head: notes[0] ?? "", rows: notes.slice(1) })];
}

function baselineNote(jobs: readonly Job[]): string {
  const baselines = jobs.flatMap(({ baseline }) => baseline ?? []);
  if (baselines.length === 0) return "";
  const commits = new Set(baselines.map(({ branch, sha }) => `${branch} at ${sha.slice(0, 7)}`));
  const shown = [...commits].slice(0, maxBaselines).map(inlineCode).join(", ");
  const left = jobs.length - baselines.length;
  const without =
    left === 0 ? "" : `; ${left} of ${formatCount(jobs.length, "job")} without a baseline`;
  return `\n\n▲, ▼ and = compare with ${shown}${without}.`;
}

function warningNotes(jobs: readonly Job[]): string[] {
  const warnings = jobs.flatMap(({ telemetry }) => telemetry.warnings);
  const byText = Map.groupBy(warnings, ({ message }) => message);
  return [...byText].map(([text, all]) => {
    const count = all.length > 1 ? ` (${all.length} jobs)` : "";
    return `- ⚠️ ${inlineCode(text)}${count}`;
  });
}

function accuracyNotes(jobs: readonly Job[]): string[] {
  if (!jobs.some(({ telemetry }) => isOnGenerated(telemetry))) return [];
  const caution = "Accuracy on generated samples shows gross damage only";
  return [`- ${caution}; give samples as \`recipe.evaluation.data\`.`];
}
