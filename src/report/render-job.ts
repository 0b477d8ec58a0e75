import { composeSections, foldSection, type Section } from "./compose-sections.ts";
import { type Conclusion, mergeNotes } from "./conclude.ts";
import { explainInMarkdown, explainInTitle, explainShortly } from "./explain-job.ts";
import {
  codeBlock,
  githubLimits,
  inlineCode,
  tableHead,
  tableRow,
  truncateToBytes,
  utf8ByteLength,
} from "./markdown.ts";
import { knownRatio } from "./figures.ts";
import { modelDiffSections } from "./model-diff-section.ts";
import { searchSections } from "./search-section.ts";
import { measurementNotes, measurementTable } from "./measurements.ts";
import { type CheckOutput, classifyOutcome, type EndedRow, outcomes } from "./report.ts";
import { describeGate } from "../contract/jobs/describe-gate.ts";
import { gateTable } from "../contract/jobs/gate-table.ts";
import type { Job } from "../contract/jobs/job.ts";
import { nextStep } from "../contract/jobs/next-steps.ts";
import { formatDecibels } from "../contract/text/format-figure.ts";

/** The check run of a job with this conclusion, and the last lines of its output. */
export function renderJobCheck(
  row: EndedRow,
  conclusion: Conclusion,
  output: readonly string[],
): CheckOutput {
  const { logUrl: url, changesUrl, job } = row;
  const maxBytes = githubLimits.checkFieldBytes;
  const code = job.error && { head: `Error code: ${inlineCode(job.error.code)}`, rows: [] };
  const measurements = [
    ...modelDiffSections(job),
    ...(job.status === "Completed" ? [changesLink(changesUrl)] : []),
    ...searchSections(job),
    ...figureSections(job),
    ...measurementNotes(job),
    ...(code ? [code] : []),
  ];
  const text = composeSections(measurements, { url, maxBytes: maxBytes / 2 });
  const tail = renderLogTail(output, { url, maxBytes: maxBytes - utf8ByteLength(text) - 2 });
  return {
    title: truncateToBytes(jobCheckTitle(row), githubLimits.checkTitleBytes),
    summary: composeSections(summarySections(row, conclusion), { url, maxBytes }),
    text: `${text}\n\n${tail}`,
  };
}

function figureSections(job: Job): Section[] {
  const table = measurementTable(job);
  return table.rows.length === 0 ? [] : [foldSection("All figures", table)];
}

/** Where all changes are, also those of the compression. */
function changesLink(url: string): Section {
  return { head: `[What changed in the graph and its weights](${url})`, rows: [] };
}

function jobCheckTitle(row: EndedRow): string {
  if (explainShortly(row.job) !== "") return explainInTitle(row);
  const { size, accuracy, latency } = row.job.telemetry;
  const latencyRatio = knownRatio(latency);
  const parts = [
    outcomes[classifyOutcome(row)].words,
    size && `${(100 * size.ratio).toFixed(0)} % of the size`,
    accuracy && formatDecibels(accuracy.sqnrDb),
    latencyRatio && `${(100 * latencyRatio).toFixed(0)} % of the latency`,
  ];
  return parts.filter(Boolean).join(", ");
}

function summarySections(row: EndedRow, conclusion: Conclusion): Section[] {
  const { gates, telemetry } = row.job;
  const notes = [summaryHead(row), `[job](${row.url})`, mergeNotes[conclusion]];
  const sections: Section[] = [{ head: notes.filter(Boolean).join(" · "), rows: [] }];
  const step = nextStep(row.job);
  if (step !== undefined) sections.push({ head: `**Next:** ${step}`, rows: [] });
  if (gates.length > 0) {
    sections.push({ head: tableHead(["", "gate", "result"]), rows: gates.map(gateRow(row.job)) });
  }
  const warnings = telemetry.warnings.map(({ message }) => `- ⚠️ ${inlineCode(message)}`);
  const [first, ...others] = warnings;
  if (first !== undefined) sections.push({ head: first, rows: others });
  return sections;
}

function summaryHead(row: EndedRow): string {
  const { mark, words } = outcomes[classifyOutcome(row)];
  const passed = `${inlineCode(row.model)} for ${inlineCode(row.target)} ${words}.`;
  return `${mark} ${explainInMarkdown(row) ?? passed}`;
}

function gateRow({ baseline }: Job): (gate: Job["gates"][number]) => string {
  const against = baseline ? inlineCode(baseline.branch) : undefined;
  return (gate) => {
    const words = describeGate(gate, { against, quote: inlineCode });
    return tableRow([gateMark(gate), gateTable[gate.gate].title, words]);
  };
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
  const head = `<details>\n<summary>End of the output</summary>\n\n[All of it](${url})`;
  const foot = "\n\n</details>";
  const lines = output.slice(-maxLines).map((line) => truncateToBytes(line, maxLineBytes));
  let tail = head + foot;
  for (let first = lines.length - 1; first >= 0; first--) {
    const longer = `${head}\n\n${codeBlock(lines.slice(first))}${foot}`;
    if (utf8ByteLength(longer) > maxBytes) break;
    tail = longer;
  }
  return tail;
}
