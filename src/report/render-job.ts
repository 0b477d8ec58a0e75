import { formatBytes } from "../contract/format-bytes.ts";
import type { Job } from "../contract/job.ts";
import { composeSections, type Section } from "./compose-sections.ts";
import { gateText, troubleOf } from "./figures.ts";
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
  const head = `${mark} ${code(row.model)} for ${code(row.target)} ${words}${trouble === "" ? "" : `: ${trouble}`}`;
  const gates = job.gates.map((gate) => tableRow([gate.passed ? "✅" : "❌", gateText(gate)]));
  const warnings = job.telemetry.warnings.map(({ code: kind, message }) => `- ⚠️ ${code(`${kind}: ${message}`)}`);
  return [
    { head, rows: [] },
    ...(gates.length > 0 ? [{ head: tableHead(["", "gate"]), rows: gates }] : []),
    ...(warnings.length > 0 ? [{ head: "Warnings:\n", rows: warnings }] : []),
  ];
}

function measuredTable({ telemetry }: Job): Section {
  const { size, accuracy, latency, memory, weights } = telemetry;
  const bytes = (count: number | undefined) => (count === undefined ? "" : formatBytes(count));
  const rows = [
    size && ["size", bytes(size.originalBytes), bytes(size.resultBytes), size.ratio.toFixed(3)],
    ...(["p50Ms", "p95Ms", "p99Ms"] as const).map((figure) => {
      if (!latency) return undefined;
      const [original, result] = [latency.original[figure], latency.result[figure]];
      return [
        `latency ${figure.replace("Ms", "")}, ms`,
        original.toFixed(2),
        result.toFixed(2),
        (result / original).toFixed(3),
      ];
    }),
    memory && ["peak memory", bytes(memory.originalPeakBytes), bytes(memory.resultPeakBytes), ""],
    weights && ["weights", String(weights.total), `${weights.quantized} changed`, ""],
    ...(accuracy?.outputs ?? []).flatMap(({ name, sqnrDb, cosine, top1Agreement }) => [
      [`SQNR of ${code(name)}`, "", `${sqnrDb.toFixed(1)} dB`, ""],
      [`cosine of ${code(name)}`, "", cosine.toFixed(5), ""],
      top1Agreement === null
        ? undefined
        : [`top-1 agreement of ${code(name)}`, "", `${(100 * top1Agreement).toFixed(1)} %`, ""],
    ]),
  ];
  return {
    head: tableHead(["figure", "original", "result", "ratio"]),
    rows: rows.flatMap((row) => (row ? tableRow(row) : [])),
  };
}

function processor({ telemetry: { device, accuracy, stageSeconds } }: Job): Section[] {
  const lines = [
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
