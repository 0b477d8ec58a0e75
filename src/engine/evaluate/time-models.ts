import type { Evaluation } from "../../contract/recipe.ts";
import type { Telemetry } from "../../contract/telemetry.ts";
import { labelRuntimeErrors } from "./label-runtime-errors.ts";
import { measureLatency } from "./measure-latency.ts";
import type { ModelPair } from "./model-pair.ts";
import { ModelSession } from "./model-session.ts";
import type { Sample } from "./tensor-data.ts";

interface ModelPaths {
  readonly originalPath: string;
  readonly resultPath: string;
}

interface TimeOptions {
  readonly evaluation: Pick<Evaluation, "runs" | "warmup">;
  readonly executionProvider: "cpu" | "cuda";
  /** Threads of each operator. */
  readonly threads: number;
  /** Outputs that are fetched. */
  readonly outputs: readonly string[];
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

/**
 * Times both models in turns on the first of the samples.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run
 */
export async function timeModels(
  { originalPath, resultPath }: ModelPaths,
  [sample = []]: readonly Sample[],
  options: TimeOptions,
): Promise<NonNullable<Telemetry["latency"]>> {
  const { evaluation, threads, signal, onProgress, log } = options;
  await using original = await openTimedSession("original", originalPath, options);
  await using result = await openTimedSession("result", resultPath, options);
  await labelRuntimeErrors("original", original.run(sample, options.outputs), { signal });
  await labelRuntimeErrors("result", result.run(sample, options.outputs), { signal });
  const { runs, warmup } = evaluation;
  const plan = `${runs} runs of each model in turns after ${warmup} of warm-up`;
  log(`Timing ${plan}, ${threads} threads`);
  const all = warmup + runs;
  const onRun = (done: number) => onProgress(done / all, `Timed run ${done} of ${all}`);
  return await measureLatency({ original, result }, { runs, warmup, signal, onRun });
}

async function openTimedSession(
  which: keyof ModelPair,
  path: string,
  { executionProvider, threads, signal }: TimeOptions,
): Promise<ModelSession> {
  const opening = ModelSession.open(path, { executionProvider, threads, signal });
  return labelRuntimeErrors(which, opening, { signal });
}
