import { formatBytes } from "../contract/format-bytes.ts";
import type { Job } from "../contract/job.ts";
import { composeSections, type Section } from "./compose-sections.ts";
import {
  changeText,
  comparableAccuracy,
  comparableLatency,
  decibels,
  gateText,
  percent,
  troubleOf,
} from "./figures.ts";
import { limits } from "./limits.ts";
import { bytesOf, code, codeBlock, cutToBytes, tableHead, tableRow } from "./markdown.ts";
import { outcomeOf, outcomes } from "./outcome.ts";
import type { CheckOutput, ReportRow } from "./report.ts";

const maxLineBytes = 1_000;
/** Who wants more of the output follows the link. */
const maxTailLines = 100;

/** A job that has ended. */
export type EndedRow = ReportRow & { readonly job: Job };

/** The job for its check run, with the last lines of its output. */
export function renderJobCheck(row: EndedRow, output: readonly string[]): CheckOutput {
  const bounds = { maxBytes: limits.checkFieldBytes, url: row.logUrl };
  const text = composeSections([measuredTable(row.job), ...processor(row.job)], {
    ...bounds,
    maxBytes: bounds.maxBytes / 2,
  });
  const tail = logTail(output.slice(-maxTailLines), {
    url: row.logUrl,
    maxBytes: limits.checkFieldBytes - bytesOf(text) - 2,
  });
  return {
    title: cutToBytes(titleOf(row), limits.checkTitleBytes),
    summary: composeSections(summarySections(row), bounds),
    text: `${text}\n\n${tail}`,
  };
}

function titleOf(row: EndedRow): string {
  const { size, accuracy, latency } = row.job.telemetry;
  const figures = [
    size && `${(100 * size.ratio).toFixed(0)} % of the size`,
    accuracy && `${accuracy.sqnrDb.toFixed(1)} dB`,
    latency && `${(100 * latency.ratio).toFixed(0)} % of the latency`,
  ].flatMap((figure) => figure ?? []);
  return [outcomes[outcomeOf(row)].words, ...figures].join(", ");
}

function summarySections(row: EndedRow): Section[] {
  const { job } = row;
  const { mark, words } = outcomes[outcomeOf(row)];
  const trouble = troubleOf(job);
  const head = `${mark} ${code(row.model)} for ${code(row.target)} ${words}${trouble === "" ? "" : `: ${code(trouble)}`}`;
  const gates = job.gates.map((gate) => tableRow([gateMark(gate), code(gateText(gate))]));
  const warnings = job.telemetry.warnings.map(({ code: kind, message }) => `- ⚠️ ${code(`${kind}: ${message}`)}`);
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
function measuredTable(job: Job): Section {
  const rows = [...sizeRows(job), ...latencyRows(job), ...accuracyRows(job), ...otherRows(job)];
  return { head: tableHead(["figure", "original", "result", "ratio", "baseline", "change"]), rows: rows.map(tableRow) };
}

function sizeRows({ telemetry: { size }, baseline }: Job): string[][] {
  if (!size) return [];
  const before = baseline?.size?.resultBytes;
  const change = before === undefined ? [] : [formatBytes(before), changeText(size.resultBytes / before - 1, percent)];
  return [
    padded("size", formatBytes(size.originalBytes), formatBytes(size.resultBytes), size.ratio.toFixed(3), ...change),
  ];
}

function latencyRows(job: Job): string[][] {
  const { latency } = job.telemetry;
  if (!latency) return [];
  const before = comparableLatency(job);
  return (["p50Ms", "p95Ms", "p99Ms"] as const).map((figure) => {
    const [original, result] = [latency.original[figure], latency.result[figure]];
    const change = before ? [before[figure].toFixed(2), changeText(result / before[figure] - 1, percent)] : [];
    const name = `latency ${figure.replace("Ms", "")}, ms`;
    return padded(name, original.toFixed(2), result.toFixed(2), (result / original).toFixed(3), ...change);
  });
}

function accuracyRows(job: Job): string[][] {
  const { accuracy } = job.telemetry;
  if (!accuracy) return [];
  const before = comparableAccuracy(job);
  const worst = before ? [decibels(before.sqnrDb), changeText(accuracy.sqnrDb - before.sqnrDb, decibels)] : [];
  return [
    padded("SQNR, worst", "", decibels(accuracy.sqnrDb), "", ...worst),
    ...accuracy.outputs.flatMap(({ name, sqnrDb, cosine, top1Agreement }) => [
      padded(`SQNR of ${code(name)}`, "", decibels(sqnrDb)),
      padded(`cosine of ${code(name)}`, "", cosine.toFixed(5)),
      ...(top1Agreement === null ? [] : [padded(`top-1 agreement of ${code(name)}`, "", percent(top1Agreement))]),
    ]),
  ];
}

function otherRows({ telemetry: { memory, weights } }: Job): string[][] {
  const bytes = (count: number | undefined) => (count === undefined ? "" : formatBytes(count));
  return [
    ...(memory ? [padded("peak memory", bytes(memory.originalPeakBytes), bytes(memory.resultPeakBytes))] : []),
    ...(weights ? [padded("weights", String(weights.total), `${weights.quantized} changed`)] : []),
  ];
}

/** A row of the table with empty cells at its end. */
function padded(...cells: (string | undefined)[]): string[] {
  return Array.from({ length: 6 }, (_, i) => cells[i] ?? "");
}

function processor({ telemetry: { device, accuracy, stageSeconds }, baseline }: Job): Section[] {
  const lines = [
    baseline && `Compared with ${code(`${baseline.branch} at ${baseline.sha.slice(0, 7)}`)}.`,
    device &&
      `Measured on ${code(device.name)}, ${device.threads} threads, ${code(`${device.executionProvider}, ${device.runtime}`)}.`,
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
function logTail(lines: readonly string[], { maxBytes, url }: { maxBytes: number; url: string }): string {
  const head = `### End of the output\n\n[All of it](${url})`;
  let tail = head;
  for (let first = lines.length - 1; first >= 0; first--) {
    const longer = `${head}\n\n${codeBlock(lines.slice(first).map((line) => cutToBytes(line, maxLineBytes)))}`;
    if (bytesOf(longer) > maxBytes) break;
    tail = longer;
  }
  return tail;
}
