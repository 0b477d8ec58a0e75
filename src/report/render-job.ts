import { formatBytes } from "../contract/format-bytes.ts";
import type { Job } from "../contract/job.ts";
import { composeSections, type Section } from "./compose-sections.ts";
import {
  formatChange,
  comparableAccuracy,
  comparableLatency,
  formatDecibels,
  describeGate,
  formatPercent,
  describeJobFailure,
} from "./figures.ts";
import { githubLimits } from "./github-limits.ts";
import {
  utf8ByteLength,
  inlineCode,
  codeBlock,
  truncateToBytes,
  tableHead,
  tableRow,
} from "./markdown.ts";
import { classifyOutcome, outcomes } from "./outcome.ts";
import type { CheckOutput, ReportRow } from "./report.ts";

const maxLineBytes = 1_000;
/** Who wants more of the output follows the link. */
const maxTailLines = 100;

/** A job that has ended. */
export type EndedRow = ReportRow & { readonly job: Job };

/** The job for its check run, with the last lines of its output. */
export function renderJobCheck(row: EndedRow, output: readonly string[]): CheckOutput {
  const bounds = { maxBytes: githubLimits.checkFieldBytes, url: row.logUrl };
  const text = composeSections([measurementTable(row.job), ...measurementSections(row.job)], {
    ...bounds,
    maxBytes: bounds.maxBytes / 2,
  });
  const tail = logTail(output.slice(-maxTailLines), {
    url: row.logUrl,
    maxBytes: githubLimits.checkFieldBytes - utf8ByteLength(text) - 2,
  });
  return {
    title: truncateToBytes(jobCheckTitle(row), githubLimits.checkTitleBytes),
    summary: composeSections(summarySections(row), bounds),
    text: `${text}\n\n${tail}`,
  };
}

function jobCheckTitle(row: EndedRow): string {
  const { size, accuracy, latency } = row.job.telemetry;
  const figures = [
    size && `${(100 * size.ratio).toFixed(0)} % of the size`,
    accuracy && `${accuracy.sqnrDb.toFixed(1)} dB`,
    latency && `${(100 * latency.ratio).toFixed(0)} % of the latency`,
  ].flatMap((figure) => figure ?? []);
  return [outcomes[classifyOutcome(row)].words, ...figures].join(", ");
}

function summarySections(row: EndedRow): Section[] {
  const { job } = row;
  const { mark, words } = outcomes[classifyOutcome(row)];
  const failure = describeJobFailure(job);
  const head = `${mark} ${inlineCode(row.model)} for ${inlineCode(row.target)} ${words}${failure === "" ? "" : `: ${inlineCode(failure)}`}`;
  const gates = job.gates.map((gate) => tableRow([gateMark(gate), inlineCode(describeGate(gate))]));
  const warnings = job.telemetry.warnings.map(
    ({ code: kind, message }) => `- ⚠️ ${inlineCode(`${kind}: ${message}`)}`,
  );
  return [
    { head, rows: [] },
    ...(gates.length > 0 ? [{ head: tableHead(["", "gate"]), rows: gates }] : []),
    ...(warnings.length > 0 ? [{ head: "Warnings:\n", rows: warnings }] : []),
  ];
}

function gateMark({ passed, level }: Job["gates"][number]): string {
  if (passed) return outcomes.passed.mark;
  return level === "warn" ? outcomes.warned.mark : outcomes.missed.mark;
}

/** What was measured of the original and of the result, beside the baseline where there is one. */
function measurementTable(job: Job): Section {
  const rows = [...sizeRows(job), ...latencyRows(job), ...accuracyRows(job), ...otherRows(job)];
  return {
    head: tableHead(["figure", "original", "result", "ratio", "baseline", "change"]),
    rows: rows.map(tableRow),
  };
}

function sizeRows({ telemetry: { size }, baseline }: Job): string[][] {
  if (!size) return [];
  const before = baseline?.size?.resultBytes;
  const change =
    before === undefined
      ? []
      : [formatBytes(before), formatChange(size.resultBytes / before - 1, formatPercent)];
  return [
    padCells(
      "size",
      formatBytes(size.originalBytes),
      formatBytes(size.resultBytes),
      size.ratio.toFixed(3),
      ...change,
    ),
  ];
}

function latencyRows(job: Job): string[][] {
  const { latency } = job.telemetry;
  if (!latency) return [];
  const before = comparableLatency(job);
  return (["p50Ms", "p95Ms", "p99Ms"] as const).map((figure) => {
    const [original, result] = [latency.original[figure], latency.result[figure]];
    const change = before
      ? [before[figure].toFixed(2), formatChange(result / before[figure] - 1, formatPercent)]
      : [];
    const name = `latency ${figure.replace("Ms", "")}, ms`;
    return padCells(
      name,
      original.toFixed(2),
      result.toFixed(2),
      (result / original).toFixed(3),
      ...change,
    );
  });
}

function accuracyRows(job: Job): string[][] {
  const { accuracy } = job.telemetry;
  if (!accuracy) return [];
  const before = comparableAccuracy(job);
  const worst = before
    ? [formatDecibels(before.sqnrDb), formatChange(accuracy.sqnrDb - before.sqnrDb, formatDecibels)]
    : [];
  return [
    padCells("SQNR, worst", "", formatDecibels(accuracy.sqnrDb), "", ...worst),
    ...accuracy.outputs.flatMap(({ name, sqnrDb, cosine, top1Agreement }) => [
      padCells(`SQNR of ${inlineCode(name)}`, "", formatDecibels(sqnrDb)),
      padCells(`cosine of ${inlineCode(name)}`, "", cosine.toFixed(5)),
      ...(top1Agreement === null
        ? []
        : [padCells(`top-1 agreement of ${inlineCode(name)}`, "", formatPercent(top1Agreement))]),
    ]),
  ];
}

function otherRows({ telemetry: { memory, weights } }: Job): string[][] {
  const bytes = (count: number | undefined) => (count === undefined ? "" : formatBytes(count));
  return [
    ...(memory
      ? [padCells("peak memory", bytes(memory.originalPeakBytes), bytes(memory.resultPeakBytes))]
      : []),
    ...(weights
      ? [padCells("weights", String(weights.total), `${weights.quantized} changed`)]
      : []),
  ];
}

/** A row of the table with empty cells at its end. */
function padCells(...cells: (string | undefined)[]): string[] {
  return Array.from({ length: 6 }, (_, i) => cells[i] ?? "");
}

function measurementSections({
  telemetry: { device, accuracy, stageSeconds },
  baseline,
}: Job): Section[] {
  const lines = [
    baseline && `Compared with ${inlineCode(`${baseline.branch} at ${baseline.sha.slice(0, 7)}`)}.`,
    device &&
      `Measured on ${inlineCode(device.name)}, ${device.threads} threads, ${inlineCode(`${device.executionProvider}, ${device.runtime}`)}.`,
    accuracy &&
      `Accuracy on ${accuracy.samples} ${accuracy.data === "generated" ? "generated samples" : "samples of the caller"}.`,
    stageSeconds &&
      `Seconds: ${Object.entries(stageSeconds)
        .map(([stage, seconds = 0]) => `${stage} ${seconds.toFixed(1)}`)
        .join(", ")}.`,
  ].flatMap((line) => line ?? []);
  return lines.length === 0 ? [] : [{ head: lines.join(" "), rows: [] }];
}

/** As many of the last lines as fit. */
function logTail(
  lines: readonly string[],
  { maxBytes, url }: { maxBytes: number; url: string },
): string {
  const head = `### End of the output\n\n[All of it](${url})`;
  let tail = head;
  for (let first = lines.length - 1; first >= 0; first--) {
    const longer = `${head}\n\n${codeBlock(lines.slice(first).map((line) => truncateToBytes(line, maxLineBytes)))}`;
    if (utf8ByteLength(longer) > maxBytes) break;
    tail = longer;
  }
  return tail;
}
