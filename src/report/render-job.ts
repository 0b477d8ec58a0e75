import type { Job } from "../contract/jobs/job.ts";
import { composeSections, type Section } from "./compose-sections.ts";
import { describeGate } from "./describe-gate.ts";
import { describeJobFailure } from "./describe-job-failure.ts";
import type { EndedRow } from "./ended-row.ts";
import { formatDecibels } from "./format-figure.ts";
import { githubLimits } from "./github-limits.ts";
import { inlineCode, tableHead, tableRow, truncateToBytes, utf8ByteLength } from "./markdown.ts";
import { measurementNotes } from "./measurement-notes.ts";
import { measurementTable } from "./measurement-table.ts";
import { classifyOutcome, outcomes } from "./outcome.ts";
import { renderLogTail } from "./render-log-tail.ts";
import type { CheckOutput } from "./report.ts";

/** The check run of a job, with the last lines of its output. */
export function renderJobCheck(row: EndedRow, output: readonly string[]): CheckOutput {
  const { logUrl: url, job } = row;
  const maxBytes = githubLimits.checkFieldBytes;
  const measurements = [measurementTable(job), ...measurementNotes(job)];
  const text = composeSections(measurements, { url, maxBytes: maxBytes / 2 });
  const tail = renderLogTail(output, { url, maxBytes: maxBytes - utf8ByteLength(text) - 2 });
  return {
    title: truncateToBytes(jobCheckTitle(row), githubLimits.checkTitleBytes),
    summary: composeSections(summarySections(row), { url, maxBytes }),
    text: `${text}\n\n${tail}`,
  };
}

function jobCheckTitle(row: EndedRow): string {
  const { size, accuracy, latency } = row.job.telemetry;
  const parts = [
    outcomes[classifyOutcome(row)].words,
    size && `${(100 * size.ratio).toFixed(0)} % of the size`,
    accuracy && formatDecibels(accuracy.sqnrDb),
    latency && `${(100 * latency.ratio).toFixed(0)} % of the latency`,
  ];
  return parts.flatMap((part) => part ?? []).join(", ");
}

function summarySections(row: EndedRow): Section[] {
  const { gates, telemetry } = row.job;
  const sections: Section[] = [{ head: summaryHead(row), rows: [] }];
  if (gates.length > 0) {
    const rows = gates.map((gate) => tableRow([gateMark(gate), inlineCode(describeGate(gate))]));
    sections.push({ head: tableHead(["", "gate"]), rows });
  }
  if (telemetry.warnings.length > 0) {
    const rows = telemetry.warnings.map(({ code, message }) => {
      return `- ⚠️ ${inlineCode(`${code}: ${message}`)}`;
    });
    sections.push({ head: "Warnings:\n", rows });
  }
  return sections;
}

function summaryHead(row: EndedRow): string {
  const { mark, words } = outcomes[classifyOutcome(row)];
  const result = `${mark} ${inlineCode(row.model)} for ${inlineCode(row.target)} ${words}`;
  const failure = describeJobFailure(row.job);
  return failure === "" ? result : `${result}: ${inlineCode(failure)}`;
}

function gateMark({ passed, level }: Job["gates"][number]): string {
  if (passed) return outcomes.passed.mark;
  return level === "warn" ? outcomes.warned.mark : outcomes.missed.mark;
}
