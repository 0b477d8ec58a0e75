import { explainWideInterval, type LatencyRatio } from "../../contract/jobs/latency.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatMs } from "../shared/format-ms.ts";
import { judgeRatio } from "../shared/judge-ratio.ts";
import { FigureCard } from "./figure-card.tsx";
import type { JobDetail } from "./shown-job.ts";

type Telemetry = JobDetail["telemetry"];

/** Size, accuracy and latency, each with its gate on a scale. */
export function FigureCards({ job: { telemetry, gateLimits } }: { readonly job: JobDetail }) {
  const { size, accuracy, latency } = telemetry;
  const readLimit = (gate: LimitedGate) => ({
    limit: gateLimits[gate],
    warns: gateLimits.warnGates?.includes(gate) ?? false,
  });
  return (
    <>
      {size && <SizeCard size={size} {...readLimit("maxSizeRatio")} />}
      {accuracy && <AccuracyCard accuracy={accuracy} {...readLimit("minSqnrDb")} />}
      {latency && <LatencyCard latency={latency} {...readLimit("maxLatencyRatio")} />}
    </>
  );
}

type LimitedGate = "maxSizeRatio" | "minSqnrDb" | "maxLatencyRatio";

interface LimitProps {
  readonly limit: number | undefined;
  /** Whether a figure beyond the limit warns, and does not fail. */
  readonly warns: boolean;
}

interface SizeCardProps extends LimitProps {
  readonly size: NonNullable<Telemetry["size"]>;
}

function SizeCard({ size, limit, warns }: SizeCardProps) {
  const { resultBytes, originalBytes, ratio, predicted } = size;
  return (
    <FigureCard
      title={predicted ? "Size, predicted" : "Size"}
      big={formatBytes(resultBytes)}
      beside={`${formatPercentage(ratio)} of ${formatBytes(originalBytes)}`}
      below={`${formatBytes(originalBytes - resultBytes)} less than the original`}
      scale={{ from: 0, to: 1, format: formatPercentage, value: ratio, limit, bound: "max" }}
      warns={warns}
    />
  );
}

interface AccuracyCardProps extends LimitProps {
  readonly accuracy: NonNullable<Telemetry["accuracy"]>;
}

const samplesFrom = { caller: "samples of yours", generated: "generated samples" } as const;

function AccuracyCard({ accuracy, limit, warns }: AccuracyCardProps) {
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
      warns={warns}
    />
  );
}

interface LatencyCardProps extends LimitProps {
  readonly latency: NonNullable<Telemetry["latency"]>;
}

const judgements = {
  better: "faster than the original",
  worse: "slower than the original",
  same: "as fast as the original, as far as is known",
} as const;

function LatencyCard({ latency, limit, warns }: LatencyCardProps) {
  const { ratio, ratioLow, ratioHigh, original, result } = latency;
  const medians = `${formatMs(result.p50Ms)}, original ${formatMs(original.p50Ms)}`;
  const judged = explainWideInterval(latency) ?? judgements[judgeRatio(latency)];
  return (
    <FigureCard
      title="Latency"
      big={`×${ratio.toFixed(2)}`}
      beside={describeInterval(latency)}
      below={`${medians}, ${result.runs} runs; ${judged}`}
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
      warns={warns}
    />
  );
}

/** Empty where there is none, and where it says nothing. */
function describeInterval(latency: LatencyRatio): string {
  const { ratioLow, ratioHigh } = latency;
  if (ratioLow === undefined || ratioHigh === undefined) return "";
  if (explainWideInterval(latency) !== undefined) return "";
  return `95 % between ${ratioLow.toFixed(2)} and ${ratioHigh.toFixed(2)}`;
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
