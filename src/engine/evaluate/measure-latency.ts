import type { Latency, Telemetry } from "../../contract/telemetry.ts";
import { labelRuntimeErrors } from "./label-runtime-errors.ts";
import type { ModelPair } from "./model-pair.ts";
import { percentile } from "./percentile.ts";

interface LatencyOptions {
  /** Timed runs of each model. */
  readonly runs: number;
  /** Runs of each model before those. */
  readonly warmup: number;
  readonly signal: AbortSignal;
  /** Called with the number of runs of each model that are done, those for warm-up included. */
  readonly onRun: (done: number) => void;
}

/** Times both models in turns, so that a change of the machine's load affects both alike. */
export async function measureLatency(
  models: ModelPair,
  { runs, warmup, signal, onRun }: LatencyOptions,
): Promise<NonNullable<Telemetry["latency"]>> {
  const times: Record<keyof ModelPair, number[]> = { original: [], result: [] };
  for (let run = 0; run < warmup + runs; run++) {
    const order =
      run % 2 === 0 ? (["original", "result"] as const) : (["result", "original"] as const);
    for (const which of order) {
      const milliseconds = await labelRuntimeErrors(which, models[which].timeRun(), { signal });
      if (run >= warmup) times[which].push(milliseconds);
    }
    onRun(run + 1);
  }
  const [original, result] = [summarizeLatency(times.original), summarizeLatency(times.result)];
  return { original, result, ratio: result.p50Ms / original.p50Ms };
}

function summarizeLatency(times: readonly number[]): Latency {
  const sorted = Float64Array.from(times).sort();
  return {
    p50Ms: percentile(sorted, 0.5),
    p95Ms: percentile(sorted, 0.95),
    p99Ms: percentile(sorted, 0.99),
    runs: times.length,
  };
}
