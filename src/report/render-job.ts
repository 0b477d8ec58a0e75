import { composeSections, type Section } from "./compose-sections.ts";
import { describeGate } from "./figures.ts";
import { formatDecibels } from "./format-figure.ts";
import {
  codeBlock,
  githubLimits,
  inlineCode,
  tableHead,
  tableRow,
  truncateToBytes,
  utf8ByteLength,
} from "./markdown.ts";
import { measurementNotes, measurementTable } from "./measurements.ts";
import { type CheckOutput, classifyOutcome, type EndedRow, outcomes } from "./report.ts";
import type { Job } from "../contract/jobs/job.ts";

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

const maxLineBytes = 1_000;
const maxLines = 100;

interface TailLimits {
  readonly maxBytes: number;
  /** The page that has the whole output. */
  readonly url: string;
}

/** As many of the last lines of a job's output as fit. */
function renderLogTail(output: readonly string[], { maxBytes, url }: TailLimits): string {
  const head = `### End of the output\n\n[All of it](${url})`;
  const lines = output.slice(-maxLines).map((line) => truncateToBytes(line, maxLineBytes));
  let tail = head;
  for (let first = lines.length - 1; first >= 0; first--) {
    const longer = `${head}\n\n${codeBlock(lines.slice(first))}`;
    if (utf8ByteLength(longer) > maxBytes) break;
    tail = longer;
  }
  return tail;
}

/** Why a job did not pass, on one line; the empty string for a job that did. */
export function describeJobFailure({ error, gates }: Pick<Job, "error" | "gates">): string {
  if (error) return `${error.code}: ${error.message}`;
  const missed = gates.filter(({ passed }) => !passed);
  return missed.map(describeGate).join(", ");
}
