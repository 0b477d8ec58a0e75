import { comparableOutputs } from "../evaluate/output-comparison.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import { findTimedOutput } from "../samples/language-inputs.ts";
import { warmUp } from "./warm-up.ts";
import type { ModelPair } from "../runtime/model-session.ts";
import { percentile } from "./percentile.ts";
import type { RuntimeProcess } from "../runtime/runtime-process.ts";
import type { ModelSignature } from "../runtime/session-protocol.ts";

type Which = keyof ModelPair;

/** The order in which a round opens the models, and in which its first batches run. */
export type Order = readonly [Which, Which];

interface RoundOptions {
  readonly process: RuntimeProcess;
  readonly paths: Readonly<Record<Which, string>>;
  /** Names of the process's feeds, one for each input shape. */
  readonly feeds: readonly string[];
  readonly order: Order;
  readonly executionProvider: "cpu" | "cuda";
  readonly threads: number;
  /** Milliseconds of runs on each input shape; on all, at least those that it took to open both. */
  readonly timedMs: number;
  readonly signal: AbortSignal;
}

/** What a round measured on one input shape: milliseconds of each model's runs, and the ratio. */
export interface RoundTimes extends Readonly<Record<Which, readonly number[]>> {
  /** Logarithm of the result's latency relative to the original's. */
  readonly logRatio: number;
}

/**
 * Opens both models again and times them on each feed, in batches that take turns, so that a change
 * of the machine's load affects both alike; then closes them.
 * @throws ServiceError evaluation_failed if a model cannot be loaded or run
 */
export async function measureRound(options: RoundOptions): Promise<RoundTimes[]> {
  const started = performance.now();
  const signatures: Partial<Record<Which, ModelSignature>> = {};
  for (const which of options.order) signatures[which] = await openForRound(which, options);
  const openedAt = performance.now();
  if (!signatures.original) throw new TypeError("A round opens the original");
  const outputs = findTimedOutputs(signatures.original);
  const timedMs = Math.max(options.timedMs, (openedAt - started) / options.feeds.length);
  const times: RoundTimes[] = [];
  for (const feed of options.feeds) {
    times.push(await timeFeed(feed, { outputs, timedMs }, options));
  }
  for (const which of options.order) {
    await options.process.request({ do: "close", key: which }, "closed");
  }
  return times;
}

function findTimedOutputs(signature: ModelSignature): string[] {
  const output = findTimedOutput(signature);
  return output === undefined ? [...comparableOutputs({ signature }).names] : [output];
}

async function openForRound(
  which: Which,
  { process, paths, executionProvider, threads, signal }: RoundOptions,
): Promise<ModelSignature> {
  const modelPath = paths[which];
  const options = { executionProvider, threads, optimize: true, spinning: true } as const;
  const opening = process.request({ do: "open", key: which, modelPath, ...options }, "open");
  return (await labelRuntimeErrors(which, opening, signal)).signature;
}

async function timeFeed(
  feed: string,
  { outputs, timedMs }: { readonly outputs: string[]; readonly timedMs: number },
  { process, order, signal }: RoundOptions,
): Promise<RoundTimes> {
  const timeRuns = async (which: Which, runs: number) => {
    const timing = process.request({ do: "time", key: which, feed, outputs, runs }, "times");
    return (await labelRuntimeErrors(which, timing, signal)).milliseconds;
  };
  const runs = { original: 0, result: 0 };
  for (const which of order) runs[which] = await warmUp((count) => timeRuns(which, count));
  const times: Record<Which, number[]> = { original: [], result: [] };
  const started = performance.now();
  for (let block = 0; performance.now() - started < timedMs; block++) {
    for (const which of takeTurns(order, block)) {
      times[which].push(...(await timeRuns(which, runs[which])));
    }
  }
  const [original, result] = [findCentre(times.original), findCentre(times.result)];
  return { ...times, logRatio: Math.log(result / original) };
}

/** The lower quartile: other processes can only make a run longer. */
function findCentre(milliseconds: readonly number[]): number {
  return percentile(Float64Array.from(milliseconds).sort(), 0.25);
}

/** Each model twice, so that a steady change of the machine's speed cancels out. */
function takeTurns([first, second]: Order, block: number): readonly Which[] {
  return block % 2 === 0 ? [first, second, second, first] : [second, first, first, second];
}
