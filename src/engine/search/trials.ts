import { dbToNoise } from "./prediction.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { maxRatio } from "../../contract/jobs/latency.ts";
import type { Accuracy } from "../../contract/jobs/telemetry.ts";
import {
  asCalibrationError,
  findSharedSamples,
  openLaterSamples,
} from "../accuracy/open-later-samples.ts";
import { openTextSamples } from "../accuracy/open-text-samples.ts";
import { findBoundedOutputs } from "../evaluate/bounded-outputs.ts";
import { labelRuntimeErrors } from "../runtime/label-runtime-errors.ts";
import { ModelSession } from "../runtime/model-session.ts";
import { RuntimeProcess } from "../runtime/runtime-process.ts";
import { logitsName } from "../runtime/logit-rows.ts";
import { addNextTokens, emptyNextTokens, summarizeNextTokens } from "../evaluate/next-tokens.ts";
import { openSamples, type SampleSource } from "../samples/open-samples.ts";
import {
  addSampleOutput,
  comparableOutputs,
  emptyOutputComparison,
} from "../evaluate/output-comparison.ts";
import { summarizeAccuracy } from "../evaluate/summarize-accuracy.ts";
import type { Sample, TensorData } from "../runtime/tensor-data.ts";

export interface TrialOptions {
  /** The original as a runtime loads it. */
  readonly modelPath: string;
  /** The checkpoint that it was written from, which has its tokenizer. */
  readonly checkpointPath: string | undefined;
  readonly recipe: Recipe;
  /** The caller's `.npz` files, or text; without them, samples are generated. */
  readonly dataPath?: string | undefined;
  readonly calibrationPath?: string | undefined;
  readonly signal: AbortSignal;
}

/** A set of samples with the original's outputs on them. */
interface SampleSet {
  readonly source: Pick<SampleSource, "data" | "count" | "unused" | "windows">;
  readonly samples: readonly (readonly [input: Sample, outputs: readonly TensorData[]])[];
}

/** Most bytes of a set's samples and of the original's outputs; one sample is always kept. */
const maxSetBytes = 384 * 1024 ** 2;

/** Of the model that a process has open. */
const key = "candidate";

type SetName = "search" | "evaluation";

/** The runtime has one thread, so that figures do not depend on the machine's processors. */
const runtime = { executionProvider: "cpu", threads: 1 } as const;

/** Runs candidates on samples and compares their outputs with the original's. */
export class Trials implements AsyncDisposable {
  readonly data: SampleSource["data"];
  /** Whether all samples are text, on which a language model predicts the next token. */
  readonly isLanguage: boolean;
  readonly samples: number;
  /** Samples of the same file that are the evaluation's; undefined where it has no part in it. */
  readonly evaluationSamples: number | undefined;
  readonly #sets: Readonly<Record<SetName, SampleSet>>;
  readonly outputs: readonly string[];
  readonly #bounded: ReadonlySet<string>;
  readonly #signal: AbortSignal;
  readonly #processes: RuntimeProcess[] = [];
  readonly #idle: RuntimeProcess[] = [];

  private constructor(
    sets: Readonly<Record<SetName, SampleSet>>,
    evaluationSamples: number | undefined,
    compared: { outputs: readonly string[]; bounded: ReadonlySet<string>; signal: AbortSignal },
  ) {
    this.data = sets.search.source.data;
    this.isLanguage = Object.values(sets).every(({ source }) => source.windows !== undefined);
    this.samples = sets.search.samples.length;
    this.evaluationSamples = evaluationSamples;
    this.#sets = sets;
    this.outputs = compared.outputs;
    this.#bounded = compared.bounded;
    this.#signal = compared.signal;
  }

  /**
   * Runs the original on the search's samples, and on the evaluation's, which it has no part in.
   * @throws ServiceError those of openLaterSamples and openSamples;
   * evaluation_failed if no output responds to the samples
   */
  static async open(options: TrialOptions): Promise<Trials> {
    const { modelPath, signal } = options;
    const opening = ModelSession.open(modelPath, { ...runtime, signal });
    await using session = await labelRuntimeErrors("original", opening, signal);
    await using resources = new AsyncDisposableStack();
    const opened = await openSampleSets(session, options, resources);
    const { outputs, evaluationSamples } = opened;
    const sets = {
      search: await record(session, opened.search, outputs, signal),
      evaluation: await record(session, opened.evaluation, outputs, signal),
    };
    const bounded = await findBoundedOutputs(modelPath);
    const trials = new Trials(sets, evaluationSamples, { outputs, bounded, signal });
    trials.#checkResponse();
    return trials;
  }

  /** Accuracy of a candidate on the evaluation's samples. */
  async compare(path: string): Promise<Accuracy> {
    return this.#compare(path, "evaluation");
  }

  /**
   * Noise of each output of a candidate relative to its signal, on the search's samples; of a
   * language model its KL divergence from the original.
   */
  async measureNoise(path: string): Promise<number[]> {
    if (this.isLanguage) return [await this.#measureDivergence(path)];
    const { outputs } = await this.#compare(path, "search");
    const noise = new Map(outputs.map(({ name, sqnrDb }) => [name, dbToNoise(sqnrDb)]));
    return this.outputs.map((name) => noise.get(name) ?? 0);
  }

  async #compare(path: string, name: SetName): Promise<Accuracy> {
    const set = this.#sets[name];
    const results = await this.#run(path, name);
    const accuracy = this.#summarize(set, results);
    if (accuracy === undefined) throw new TypeError("No output is compared any more");
    return this.isLanguage ? { ...accuracy, language: summarizeText(set, results) } : accuracy;
  }

  /** The mean of all positions, nats. */
  async #measureDivergence(path: string): Promise<number> {
    const { windows = [] } = this.#sets.search.source;
    return this.#withCandidate(path, async (process) => {
      let [nats, positions] = [0, 0];
      for (const index of this.#sets.search.samples.keys()) {
        const names = { feed: `search-${index}`, reference: `original-${index}` };
        const request = { do: "compare-tokens", key, ...names } as const;
        nats += (await process.request(request, "divergence")).nats ?? Infinity;
        positions += windows[index]?.length ?? 0;
      }
      return Math.min(maxRatio, nats / positions);
    });
  }

  async #run(path: string, set: SetName): Promise<TensorData[][]> {
    return this.#withCandidate(path, async (process) => {
      const results: TensorData[][] = [];
      for (const index of this.#sets[set].samples.keys()) {
        const request = { feed: `${set}-${index}`, outputs: [...this.outputs] };
        const reply = await process.request({ do: "run", key, ...request }, "outputs");
        results.push(reply.tensors);
      }
      return results;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((each) => each[Symbol.asyncDispose]()));
  }

  /** Starting the runtime and sending samples take longer than running a small candidate. */
  async #startProcess(): Promise<RuntimeProcess> {
    const process = new RuntimeProcess(this.#signal);
    this.#processes.push(process);
    for (const [name, { samples }] of Object.entries(this.#sets)) {
      for (const [index, [sample]] of samples.entries()) {
        const feed = `${name}-${index}`;
        await process.request({ do: "feed", feed, inputs: [...sample] }, "fed");
      }
    }
    if (!this.isLanguage) return process;
    const { windows = [] } = this.#sets.search.source;
    for (const [index, [, [logits]]] of this.#sets.search.samples.entries()) {
      if (logits === undefined) throw new TypeError("A language model gave no logits");
      const reference = `original-${index}`;
      const positions = windows[index]?.length ?? 0;
      const request = { do: "remember-logits", reference, logits, positions } as const;
      await process.request(request, "fed");
    }
    return process;
  }

  /** Opens a candidate in a process that is idle. */
  async #withCandidate<T>(
    modelPath: string,
    use: (process: RuntimeProcess) => Promise<T>,
  ): Promise<T> {
    const process = this.#idle.pop() ?? (await this.#startProcess());
    const work = async () => {
      const opening = { do: "open", key, modelPath, optimize: true, ...runtime } as const;
      await process.request(opening, "open");
      const found = await use(process);
      await process.request({ do: "close", key }, "closed");
      return found;
    };
    const found = await labelRuntimeErrors("result", work(), this.#signal);
    this.#idle.push(process);
    return found;
  }

  #checkResponse(): void {
    for (const set of Object.values(this.#sets)) {
      const own = set.samples.map(([, outputs]) => outputs);
      if (this.#summarize(set, own) !== undefined) continue;
      const problem = `hardly differ between the ${set.source.count} ${set.source.data} samples`;
      const message = `The original's outputs ${problem}, so that their loss cannot be searched`;
      throw new ServiceError(
        set.source.data === "caller" ? "evaluation_data_invalid" : "evaluation_failed",
        `${message}: give samples that they respond to`,
      );
    }
  }

  #summarize(
    { source, samples }: SampleSet,
    results: readonly (readonly TensorData[])[],
  ): Accuracy | undefined {
    const comparisons = this.outputs.map(emptyOutputComparison);
    for (const [index, [, originals]] of samples.entries()) {
      for (const comparison of comparisons) {
        const isSame = ({ name }: TensorData) => name === comparison.name;
        const [original, result] = [originals.find(isSame), results[index]?.find(isSame)];
        if (original && result) addSampleOutput(comparison, original, result);
      }
    }
    return summarizeAccuracy(comparisons, source, this.#bounded).accuracy;
  }
}

interface SampleSets extends Readonly<Record<SetName, SampleSource>> {
  /** Outputs that are compared. */
  readonly outputs: readonly string[];
  readonly evaluationSamples: number | undefined;
}

/** The search has the calibration's samples, or without one those after the evaluation's. */
async function openSampleSets(
  session: ModelSession,
  { recipe, dataPath, calibrationPath, ...options }: TrialOptions,
  resources: AsyncDisposableStack,
): Promise<SampleSets> {
  const { auto, calibration, evaluation } = recipe;
  const { names } = comparableOutputs(session);
  const isCalibrated = calibration !== undefined;
  const opening = openLaterSamples(session, {
    ...options,
    dataPath: isCalibrated ? calibrationPath : dataPath,
    evaluationSamples: isCalibrated ? findSharedSamples(recipe) : evaluation.samples,
    samples: auto?.samples ?? 1,
    outputs: names,
  });
  const search = resources.use(await (isCalibrated ? asCalibrationError(opening) : opening));
  const { evaluationSamples } = search;
  const samples = evaluationSamples ?? evaluation.samples;
  const verifying = { ...options, dataPath, outputs: names, evaluation: { samples } };
  const { source: text } = await openTextSamples(session, verifying);
  const verified = resources.use(text ?? (await openSamples(session, verifying)));
  const isLanguage = search.windows !== undefined && text !== undefined;
  const outputs = isLanguage ? [logitsName] : names;
  return { search, evaluation: verified, outputs, evaluationSamples };
}

async function record(
  session: ModelSession,
  source: SampleSource,
  outputs: readonly string[],
  signal: AbortSignal,
): Promise<SampleSet> {
  const samples: [Sample, TensorData[]][] = [];
  let bytes = 0;
  for await (const sample of source.samples) {
    const results = await labelRuntimeErrors("original", session.run(sample, outputs), signal, {
      code: source.failureCode,
    });
    bytes += [...sample, ...results].reduce((sum, tensor) => sum + tensor.bytes.length, 0);
    if (samples.length > 0 && bytes > maxSetBytes) break;
    samples.push([sample, results]);
  }
  return { source: { ...source, count: samples.length, unused: 0 }, samples };
}

function summarizeText(
  { source: { windows = [] }, samples }: SampleSet,
  results: readonly (readonly TensorData[])[],
): Accuracy["language"] {
  const sums = emptyNextTokens();
  for (const [index, [, [original]]] of samples.entries()) {
    const [window, result] = [windows[index], results[index]?.[0]];
    if (window && original && result) addNextTokens(sums, window, original, result);
  }
  return summarizeNextTokens(sums);
}
