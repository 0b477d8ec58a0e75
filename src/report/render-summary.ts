import { formatBytes } from "../contract/format-bytes.ts";
import { gateTable } from "../contract/gate.ts";
import type { Job } from "../contract/job.ts";
import { bytesOf, plain } from "./markdown.ts";
import type { Report } from "./report.ts";

const heads = ["model", "target", "status", "size", "ratio", "SQNR", "cosine", "latency p50", "gates"] as const;

/** The batch as a table with a row for each job, in at most so many bytes: rows that do not fit are counted. */
export function renderSummary({ jobs, batch, batchUrl }: Report, maxBytes: number): string {
  const head = [`## ${plain(batch.name)}`, "", line(heads), line(heads.map(() => "---"))].join("\n");
  const more = (count: number) => `\n\n${count} more rows: see ${batchUrl}`;
  let text = head;
  for (const [i, job] of jobs.entries()) {
    const row = `\n${line(cellsOf(job))}`;
    const left = jobs.length - i;
    if (bytesOf(text) + bytesOf(row) + bytesOf(more(left)) > maxBytes) return text + more(left);
    text += row;
  }
  return text;
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function cellsOf({ model, target, status, telemetry, gates, error }: Job): string[] {
  const { size, accuracy, latency } = telemetry;
  const none = "–";
  return [
    plain(model.name),
    plain(target),
    error ? `${status}: ${plain(error.code)}` : status,
    size ? `${formatBytes(size.originalBytes)} → ${formatBytes(size.resultBytes)}` : none,
    size ? size.ratio.toFixed(2) : none,
    accuracy ? `${accuracy.sqnrDb.toFixed(1)} dB` : none,
    accuracy ? accuracy.cosine.toFixed(4) : none,
    latency ? `${latency.original.p50Ms.toFixed(2)} → ${latency.result.p50Ms.toFixed(2)} ms` : none,
    gatesCell(gates),
  ];
}

function gatesCell(gates: Job["gates"]): string {
  const failed = gates.filter(({ passed }) => !passed);
  if (gates.length === 0) return "–";
  if (failed.length === 0) return `${gates.length} passed`;
  return failed
    .map(({ gate, actual, limit }) => {
      const measured = actual === null ? "not measured" : String(Number(actual.toPrecision(3)));
      return `${gate} failed: ${measured} ${gateTable[gate].bound === "max" ? "&gt;" : "&lt;"} ${limit}`;
    })
    .join(", ");
}
