import { maxLatencyShapes } from "../../contract/jobs/latency.ts";
import type { Evaluation } from "../../contract/jobs/recipe.ts";
import { compareLatency, type LatencyComparison } from "./compare-latency.ts";
import type { Sample } from "../runtime/tensor-data.ts";

interface TimeOptions {
  readonly originalPath: string;
  readonly resultPath: string;
  readonly evaluation: Pick<Evaluation, "latencyBudgetSeconds">;
  readonly executionProvider: "cpu" | "cuda";
  /** Threads of each operator. */
  readonly threads: number;
  /** A ratio that a gate compares with: timing goes on until it is known on which side it is. */
  readonly limit: number | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

/**
 * Times both models on the first samples, which differ in their shapes, where the recipe gives it
 * time.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run
 */
export async function timeModels(
  samples: readonly Sample[],
  options: TimeOptions,
): Promise<Partial<LatencyComparison> & Pick<LatencyComparison, "warnings">> {
  const { latencyBudgetSeconds: budgetSeconds } = options.evaluation;
  if (budgetSeconds === 0) {
    const message = "The recipe's evaluation.latencyBudgetSeconds is 0: no latency was measured";
    return { warnings: [{ code: "latency_not_timed", message }] };
  }
  options.log(`Timing both models for ${budgetSeconds} s at most, ${options.threads} threads`);
  return compareLatency({ ...options, samples: samples.slice(0, maxLatencyShapes), budgetSeconds });
}
