import { formatBytes } from "../contract/format-bytes.ts";
import type { CompressionReport } from "../engine/compress-model.ts";
import type { Evaluation } from "./evaluate-result.ts";

/** The figures of a job, as its last words. */
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
  if (accuracy) {
    const basis =
      accuracy.level === "weights"
        ? "worst weight"
        : `worst output on ${accuracy.samples} ${accuracy.data} samples`;
    lines.push(
      `Accuracy: SQNR ${accuracy.sqnrDb.toFixed(1)} dB, cosine ${accuracy.cosine.toFixed(5)}, ${basis}`,
    );
  }
  if (latency) {
    const [original, result] = [latency.original.p50Ms.toFixed(2), latency.result.p50Ms.toFixed(2)];
    lines.push(`Latency: median ${original} ms to ${result} ms, ratio ${latency.ratio.toFixed(2)}`);
  }
  return lines;
}
