import { formatBytes } from "../../contract/format-bytes.ts";
import { formatMs } from "../shared/format-ms.ts";
import { judgeRatio } from "../shared/judge-ratio.ts";
import { FigureCard } from "./figure-card.tsx";
import type { JobDetail } from "./shown-job.ts";

type Telemetry = JobDetail["telemetry"];

/** Size, accuracy and latency, each with its gate on a scale. */
export function FigureCards({ job: { telemetry, gateLimits } }: { readonly job: JobDetail }) {
  const { size, accuracy, latency } = telemetry;
  return (
    <>
      {size && <SizeCard size={size} limit={gateLimits.maxSizeRatio} />}
      {accuracy && <AccuracyCard accuracy={accuracy} limit={gateLimits.minSqnrDb} />}
      {latency && <LatencyCard latency={latency} limit={gateLimits.maxLatencyRatio} />}
    </>
  );
}

interface SizeCardProps {
  readonly size: NonNullable<Telemetry["size"]>;
  readonly limit: number | undefined;
}

function SizeCard({ size, limit }: SizeCardProps) {
  const { resultBytes, originalBytes, ratio, predicted } = size;
  return (
    <FigureCard
      title={predicted ? "Size, predicted" : "Size"}
      big={formatBytes(resultBytes)}
      beside={`${formatPercentage(ratio)} of ${formatBytes(originalBytes)}`}
      below={`${formatBytes(originalBytes - resultBytes)} less than the original`}
      scale={{ from: 0, to: 1, format: formatPercentage, value: ratio, limit, bound: "max" }}
    />
  );
}

interface AccuracyCardProps {
  readonly accuracy: NonNullable<Telemetry["accuracy"]>;
  readonly limit: number | undefined;
}

const samplesFrom = { caller: "samples of yours", generated: "generated samples" } as const;

function AccuracyCard({ accuracy, limit }: AccuracyCardProps) {
  const { sqnrDb, cosine, samples, data, level, outputs } = accuracy;
  const worst = outputs.length > 1 ? `Worst of ${outputs.length} outputs, on` : "On";
  const measured = `${worst} ${samples} ${samplesFrom[data]}`;
  return (
    <FigureCard
      title="Accuracy"
      big={`${sqnrDb.toFixed(1)} dB`}
      beside={`cosine ${cosine.toFixed(4)}`}
      below={level === "weights" ? "The worst of all weights" : measured}
      scale={{ from: 0, to: 60, format: formatWholeDb, value: sqnrDb, limit, bound: "min" }}
    />
  );
}

interface LatencyCardProps {
  readonly latency: NonNullable<Telemetry["latency"]>;
  readonly limit: number | undefined;
}

const judgements = {
  better: "Faster than the original",
  worse: "Slower than the original",
  same: "As fast as the original, as far as is known",
} as const;

function LatencyCard({ latency, limit }: LatencyCardProps) {
  const { ratio, ratioLow, ratioHigh, original, result } = latency;
  const medians = `${formatMs(result.p50Ms)}, original ${formatMs(original.p50Ms)}`;
  return (
    <FigureCard
      title="Latency"
      big={`×${ratio.toFixed(2)}`}
      beside={describeInterval(ratioLow, ratioHigh)}
      below={`${judgements[judgeRatio(latency)]}. ${medians}, ${result.runs} runs`}
      scale={{
        from: 0.4,
        to: 1.6,
        format: formatTimes,
        value: ratio,
        low: ratioLow,
        high: ratioHigh,
        original: 1,
        limit,
        bound: "max",
      }}
    />
  );
}

/** Beyond it, too few sessions were timed to say anything. */
const knownRatio = 10;

function describeInterval(low: number | undefined, high: number | undefined): string {
  if (low === undefined || high === undefined) return "";
  if (high > knownRatio) return "too few sessions for an interval";
  return `95 % between ${low.toFixed(2)} and ${high.toFixed(2)}`;
}

function formatPercentage(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function formatWholeDb(value: number): string {
  return `${Math.round(value)} dB`;
}

function formatTimes(ratio: number): string {
  return `×${Number(ratio.toFixed(2))}`;
}
