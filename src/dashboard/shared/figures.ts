import { formatMs } from "./format.ts";
import { sqnrObstacle } from "../../contract/jobs/comparability.ts";
import type { Job } from "../../contract/jobs/job.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { summarizeJob } from "../../contract/jobs/summarize-job.ts";
import type { LatencyRatio } from "../../contract/jobs/latency.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatChange, formatDecibels, formatPercent } from "../../contract/text/format-figure.ts";
import { notTimed } from "../../report/figures.ts";

type MeasuredJob = Pick<JobSummary, "figures" | "baseline">;

export type ComparedFigure = "size" | "accuracy" | "latency";

/** How a figure of a job differs from its baseline's. */
export interface FigureChange {
  readonly figure: ComparedFigure;
  readonly judgement: Judgement;
  readonly before: string;
  readonly now: string;
  /** Such as `▼ 3.1 %`; `=` where it rounds to zero. */
  readonly change: string;
  /** Times the noise that it differs by, above 0 where it is worse. */
  readonly severity: number;
}

/** Differences that mean nothing: shares of size and latency, and dB. */
const noise = { size: 0.01, accuracy: 1, latency: 0.05 } as const;

const comparisons = [compareSizes, compareAccuracies, compareLatencies];

/** The figures that a job and its baseline have in common. */
export function compareFigures(job: MeasuredJob): FigureChange[] {
  return comparisons.flatMap((compare) => compare(job) ?? []);
}

/** The figures of a job that its baseline has nothing to compare with, and why. */
export function explainUncompared(
  job: Job,
): { figure: ComparedFigure; now: string; why: string }[] {
  const { telemetry, baseline } = job;
  const { figures } = summarizeJob(job);
  if (!baseline) return [];
  const compared = compareFigures(summarizeJob(job)).map(({ figure }) => figure);
  const measured = [
    {
      figure: "accuracy" as const,
      now: figures.sqnrDb === null ? undefined : formatDecibels(figures.sqnrDb),
      why: baseline.accuracy ? sqnrObstacle(telemetry, baseline) : undefined,
    },
    {
      figure: "latency" as const,
      now: figures.latencyMs === null ? undefined : formatMs(figures.latencyMs),
      why: notTimed,
    },
  ];
  return measured.flatMap(({ figure, now, why = "not measured" }) => {
    return now === undefined || compared.includes(figure) ? [] : [{ figure, now, why }];
  });
}

function compareSizes({ figures, baseline }: MeasuredJob): FigureChange | undefined {
  const [now, before] = [figures.resultBytes, baseline?.resultBytes];
  if (now === null || !before) return undefined;
  return describeRatio("size", widen(now / before, noise.size), {
    before: formatBytes(before),
    now: formatBytes(now),
  });
}

function compareAccuracies({ figures, baseline }: MeasuredJob): FigureChange | undefined {
  const [now, before] = [figures.sqnrDb, baseline?.sqnrDb ?? null];
  if (now === null || before === null) return undefined;
  const severity = (before - now) / noise.accuracy;
  return {
    figure: "accuracy",
    judgement: Math.abs(severity) <= 1 ? "same" : severity > 0 ? "worse" : "better",
    before: formatDecibels(before),
    now: formatDecibels(now),
    change: formatChange(now - before, formatDecibels) ?? "",
    severity,
  };
}

/** Of one run only: other runs are of another hour, and of another machine. */
function compareLatencies({ figures, baseline }: MeasuredJob): FigureChange | undefined {
  const now = figures.latencyMs;
  const measured = baseline === null ? undefined : toLatencyRatio(baseline);
  if (now === null || measured === undefined) return undefined;
  const texts = { before: formatMs(now / measured.ratio), now: formatMs(now) };
  return describeRatio("latency", measured, texts);
}

function widen(ratio: number, share: number): LatencyRatio {
  return { ratio, ratioLow: ratio / (1 + share), ratioHigh: ratio * (1 + share) };
}

function describeRatio(
  figure: "size" | "latency",
  measured: LatencyRatio,
  texts: Pick<FigureChange, "before" | "now">,
): FigureChange {
  const growth = measured.ratio - 1;
  const change = formatChange(growth, formatPercent) ?? "";
  const severity = growth / noise[figure];
  return { figure, judgement: judgeRatio(measured), ...texts, change, severity };
}

type Judgement = "better" | "worse" | "same";

/** Figures without an interval vary by this much when nothing has changed. */
const ratioNoise = 0.03;

/**
 * The one rule for colours: a ratio is better or worse where its whole interval is on that side of
 * 1, which is what it is compared with: the original or the baseline's result.
 */
export function judgeRatio({ ratio, ratioLow, ratioHigh }: LatencyRatio): Judgement {
  const [low, high] = [ratioLow ?? ratio * (1 - ratioNoise), ratioHigh ?? ratio * (1 + ratioNoise)];
  if (high < 1) return "better";
  return low > 1 ? "worse" : "same";
}

/** SQNRs of weights, dB, below which they are worth a look. */
export const sqnrThresholdsDb = { bad: 20, warn: 28 } as const;

type SummarizedRatio = Pick<
  JobSummary["figures"],
  "latencyRatio" | "latencyRatioLow" | "latencyRatioHigh"
>;

/** Undefined where it was not measured. */
export function toLatencyRatio({
  latencyRatio: ratio,
  latencyRatioLow: ratioLow,
  latencyRatioHigh: ratioHigh,
}: SummarizedRatio): LatencyRatio | undefined {
  if (ratio === null) return undefined;
  return { ratio, ratioLow: ratioLow ?? undefined, ratioHigh: ratioHigh ?? undefined };
}
