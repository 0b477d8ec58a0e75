import { formatBytes } from "../contract/text/format-bytes.ts";
import { describeGate } from "../contract/jobs/describe-gate.ts";
import type { Job } from "../contract/jobs/job.ts";

const heads = [
  "model",
  "target",
  "size",
  "ratio",
  "SQNR",
  "cosine",
  "latency p50",
  "gates",
] as const;
type Cells = Record<(typeof heads)[number], string>;

/** Figures of jobs as a table, or as a paragraph each where the table is wider than `columns`. */
export function resultTable(jobs: readonly Job[], columns: number): string {
  const rows = jobs.map(jobCells);
  const widths = heads.map((head) => Math.max(head.length, ...rows.map((row) => row[head].length)));
  const rule = widths.map((width) => "-".repeat(width));
  const cells = [heads, rule, ...rows.map((row) => heads.map((head) => row[head]))];
  const table = cells.map((texts) => formatTableRow(texts, widths));
  const isNarrow = table.every((text) => text.length <= columns);
  return isNarrow ? table.join("\n") : rows.map(jobParagraph).join("\n\n");
}

function formatTableRow(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, i) => cell.padEnd(widths[i] ?? 0));
  return padded.join("  ").trimEnd();
}

function jobCells({ model, target, status, error, telemetry, gates }: Job): Cells {
  const { size, accuracy, latency } = telemetry;
  return {
    model: model.name,
    target,
    size: size ? `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)}` : "-",
    ratio: size ? size.ratio.toFixed(2) : "-",
    SQNR: accuracy ? `${accuracy.sqnrDb.toFixed(1)} dB` : "-",
    cosine: accuracy ? accuracy.cosine.toFixed(4) : "-",
    "latency p50": latency
      ? `${latency.original.p50Ms.toFixed(2)} → ${latency.result.p50Ms.toFixed(2)} ms`
      : "-",
    gates: status === "Completed" ? gatesText(gates) : `${status}${error ? `: ${error.code}` : ""}`,
  };
}

function gatesText(gates: Job["gates"]): string {
  const failed = gates.filter((gate) => !gate.passed);
  if (gates.length === 0) return "none";
  if (failed.length === 0) return `${gates.length} passed`;
  return `failed: ${failed.map((gate) => describeGate(gate)).join(", ")}`;
}

function jobParagraph({ model, target, ...figures }: Cells): string {
  const width = Math.max(...heads.map((head) => head.length));
  const lines = Object.entries(figures).map(([head, text]) => `  ${head.padEnd(width)}  ${text}`);
  return [`${model} for ${target}`, ...lines].join("\n");
}
