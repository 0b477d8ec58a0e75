import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatRatio } from "../contract/jobs/latency.ts";
import type { Accuracy } from "../contract/jobs/telemetry.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import type { Evaluation } from "./add-measured.ts";

/** The figures of a job, for the end of its log. */
export function summarizeResult(
  { originalBytes, resultBytes, weights }: CompressionReport,
  evaluation: Evaluation,
): string[] {
  const { accuracy, latency } = evaluation;
  const changed = weights.filter(({ form }) => form !== null).length;
  const ratio = (resultBytes / originalBytes).toFixed(3);
  const lines = [
    `Size: ${formatBytes(originalBytes)} to ${formatBytes(resultBytes)}, ratio ${ratio}`,
    `Weights: ${changed} of ${weights.length} changed`,
  ];
  if (accuracy) lines.push(accuracyLine(accuracy));
  if (latency) {
    const [original, result] = [latency.original.p50Ms.toFixed(2), latency.result.p50Ms.toFixed(2)];
    lines.push(`Latency: median ${original} ms to ${result} ms, ratio ${formatRatio(latency)}`);
  }
  return lines;
}

function accuracyLine({ level, samples, data, sqnrDb, cosine }: Accuracy): string {
  const basis = level === "weights" ? "worst weight" : `worst output on ${samples} ${data} samples`;
  return `Accuracy: SQNR ${sqnrDb.toFixed(1)} dB, cosine ${cosine.toFixed(5)}, ${basis}`;
}
