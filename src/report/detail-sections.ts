import { hasFailedGate } from "../contract/jobs/gate.ts";
import type { Section } from "./compose-sections.ts";
import { figures } from "./figures.ts";
import { inlineCode, tableHead, tableRow } from "./markdown.ts";
import { noteSections } from "./note-sections.ts";
import { classifyOutcome, outcomes } from "./outcome.ts";
import type { ReportRow } from "./report.ts";

const emptyCell = "–";

/** The tables of all jobs, with notes. */
export function detailSections(rows: readonly ReportRow[]): Section[] {
  if (rows.length === 0) return [];
  return [...ratioMatrixSections(rows), jobsTable(rows), ...noteSections(rows)];
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
  return [{ head: `### Size ratios\n\n${head}`, rows: lines }];
}

function ratioCell(row: ReportRow): string {
  const ratio = row.job?.telemetry.size?.ratio.toFixed(2) ?? "";
  return `${outcomes[classifyOutcome(row)].mark} ${ratio}`.trimEnd();
}

function jobsTable(rows: readonly ReportRow[]): Section {
  const head = tableHead(["model", "target", "status", ...Object.keys(figures), "gates"]);
  return { head: `### Jobs\n\n${head}`, rows: rows.map(jobTableRow) };
}

function jobTableRow(row: ReportRow): string {
  const { model, target, job } = row;
  const measured = Object.values(figures).map((figure) => (job && figure(job)) ?? emptyCell);
  const cells = [inlineCode(model), inlineCode(target), statusCell(row), ...measured];
  return tableRow([...cells, gatesCell(job)]);
}

function statusCell(row: ReportRow): string {
  const { mark } = outcomes[classifyOutcome(row)];
  const error = row.job?.error;
  return `${mark} ${row.status}${error ? `: ${error.code}` : ""}`;
}

function gatesCell(job: ReportRow["job"]): string {
  if (!job || job.gates.length === 0) return emptyCell;
  const missed = job.gates.filter(({ passed }) => !passed).length;
  const word = hasFailedGate(job.gates) ? "failed" : "warned";
  return missed === 0 ? `${job.gates.length} passed` : `${missed} of ${job.gates.length} ${word}`;
}
