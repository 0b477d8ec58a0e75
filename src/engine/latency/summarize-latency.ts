import {
  type Latency,
  maxLatencyShapes,
  maxRatio,
  type ModelLatency,
} from "../../contract/jobs/latency.ts";
import type { RatioInterval } from "./ratio-estimate.ts";
import type { RoundTimes } from "./latency-round.ts";
import { describeShapes } from "../samples/generate-sample.ts";
import { describeTokens } from "../samples/language-inputs.ts";
import { percentile } from "./percentile.ts";
import type { Sample } from "../runtime/tensor-data.ts";

/** What was measured on one input shape. */
interface MeasuredShape {
  readonly sample: Sample;
  readonly rounds: readonly RoundTimes[];
  readonly interval: RatioInterval;
}

/** Least runs for which a percentile has five runs beyond it. */
const minRuns = { p95: 100, p99: 500 };

const maxInputsLength = 120;

/** The shape of the highest ratio stands for the model; several shapes are listed. */
export function summarizeLatency(shapes: readonly MeasuredShape[]): Latency {
  const slowest = findSlowest(shapes);
  const { sessions } = slowest.interval;
  const latency = {
    original: summarizeRuns(slowest.rounds.flatMap(({ original }) => original)),
    result: summarizeRuns(slowest.rounds.flatMap(({ result }) => result)),
    ...nameBounds(slowest.interval),
    sessions,
  };
  if (shapes.length === 1) return latency;
  return { ...latency, shapes: shapes.slice(0, maxLatencyShapes).map(summarizeShape) };
}

/** @throws RangeError if there are no shapes */
export function findSlowest<Shape extends { readonly interval: RatioInterval }>(
  shapes: readonly Shape[],
): Shape {
  const [slowest] = shapes.toSorted((one, other) => other.interval.ratio - one.interval.ratio);
  if (slowest === undefined) throw new RangeError("No input shape was measured");
  return slowest;
}

function summarizeRuns(milliseconds: readonly number[]): ModelLatency {
  const sorted = Float64Array.from(milliseconds).sort();
  const runs = sorted.length;
  const summary: ModelLatency = { p50Ms: percentile(sorted, 0.5), runs };
  if (runs >= minRuns.p95) summary.p95Ms = percentile(sorted, 0.95);
  if (runs >= minRuns.p99) summary.p99Ms = percentile(sorted, 0.99);
  return summary;
}

function nameBounds({ ratio, low, high }: RatioInterval) {
  return { ratio, ratioLow: low, ratioHigh: Math.min(high, maxRatio) };
}

function summarizeShape({ sample, rounds, interval }: MeasuredShape) {
  return {
    inputs: describeTokens(sample) ?? describeShapes(sample).slice(0, maxInputsLength),
    originalP50Ms: summarizeRuns(rounds.flatMap(({ original }) => original)).p50Ms,
    resultP50Ms: summarizeRuns(rounds.flatMap(({ result }) => result)).p50Ms,
    ...nameBounds(interval),
  };
}
