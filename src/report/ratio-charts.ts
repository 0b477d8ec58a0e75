import type { ReportRow } from "./report.ts";
import type { Section } from "./compose-sections.ts";

const maxBars = 16;

/** Bar charts of sizes and latencies relative to the original's, in Mermaid. */
export function ratioCharts(rows: readonly ReportRow[]): Section[] {
  return [
    ratioChart("Size of the result, original = 1", rows, ({ telemetry }) => telemetry.size?.ratio),
    ratioChart(
      "Median latency of the result, original = 1",
      rows,
      ({ telemetry }) => telemetry.latency?.ratio,
    ),
  ].flatMap((section) => section ?? []);
}

function ratioChart(
  title: string,
  rows: readonly ReportRow[],
  measure: (job: NonNullable<ReportRow["job"]>) => number | undefined,
): Section | undefined {
  const bars = rows.flatMap(({ model, target, job }) => {
    const ratio = job && measure(job);
    return ratio === undefined ? [] : { label: `"${sanitizeLabel(`${model} ${target}`)}"`, ratio };
  });
  if (bars.length < 2 || bars.length > maxBars) return undefined;
  const top = Math.max(1, ...bars.map(({ ratio }) => Math.ceil(ratio * 10) / 10));
  const lines = [
    "```mermaid",
    "xychart-beta horizontal",
    `  title "${title}"`,
    `  x-axis [${bars.map(({ label }) => label).join(", ")}]`,
    `  y-axis 0 --> ${top}`,
    `  bar [${bars.map(({ ratio }) => ratio.toFixed(3)).join(", ")}]`,
    "```",
  ];
  return { head: lines.join("\n"), rows: [] };
}

function sanitizeLabel(text: string): string {
  const label = text.replaceAll(/[^\w .-]/g, "_");
  return label.length <= 40 ? label : `${label.slice(0, 20)}..${label.slice(-18)}`;
}
