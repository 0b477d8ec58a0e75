import { ServiceError } from "../../contract/errors.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import type { Accuracy } from "../../contract/jobs/telemetry.ts";
import { openCalibrationSamples } from "../calibrate/open-calibration-samples.ts";
import { findBoundedOutputs } from "../evaluate/bounded-outputs.ts";
import { labelRuntimeErrors } from "../evaluate/label-runtime-errors.ts";
import { ModelSession } from "../evaluate/model-session.ts";
import { RuntimeProcess } from "../evaluate/runtime-process.ts";
import { type ArraySource, openSamples } from "../evaluate/open-samples.ts";
import {
  addSampleOutput,
  comparableOutputs,
  emptyOutputComparison,
} from "../evaluate/output-comparison.ts";
import { summarizeAccuracy } from "../evaluate/summarize-accuracy.ts";
import type { Sample, TensorData } from "../evaluate/tensor-data.ts";

export interface TrialOptions {
  readonly modelPath: string;
  readonly recipe: Recipe;
  /** The caller's `.npz` files; without them, samples are generated. */
  readonly dataPath?: string | undefined;
  readonly calibrationPath?: string | undefined;
  readonly signal: AbortSignal;
}

/** A set of samples with the original's outputs on them. */
interface SampleSet {
  readonly source: Pick<ArraySource, "data" | "count" | "unused">;
  readonly samples: readonly (readonly [input: Sample, outputs: readonly TensorData[]])[];
}

/** Most bytes of the samples of a set and of the original's outputs, of which one is always kept. */
const maxSetBytes = 256 * 1024 ** 2;

type SetName = "search" | "evaluation";

/** The runtime has one thread, so that figures do not depend on the machine's processors. */
const runtime = { executionProvider: "cpu", threads: 1 } as const;

/** Runs candidates on samples and compares their outputs with the original's. */
export class Trials implements AsyncDisposable {
  readonly data: ArraySource["data"];
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
    this.samples = sets.search.samples.length;
    this.evaluationSamples = evaluationSamples;
    this.#sets = sets;
    this.outputs = compared.outputs;
    this.#bounded = compared.bounded;
    this.#signal = compared.signal;
  }

  /**
   * Runs the original on the search's samples, and on the evaluation's, which it has no part in.
   * @throws ServiceError those of openCalibrationSamples and openSamples; evaluation_failed if no
   * output responds to the samples
   */
  static async open(options: TrialOptions): Promise<Trials> {
    const { modelPath, recipe, signal } = options;
    const opening = ModelSession.open(modelPath, { ...runtime, signal });
    await using session = await labelRuntimeErrors("original", opening, signal);
    const { names: outputs } = comparableOutputs(session);
    await using searched = await openSearchSamples(session, outputs, options);
    const { evaluationSamples } = searched;
    await using evaluated = await openSamples(session, {
      ...options,
      outputs,
      evaluation: { samples: evaluationSamples ?? recipe.evaluation.samples },
    });
    const sets = {
      search: await record(session, searched, outputs, signal),
      evaluation: await record(session, evaluated, outputs, signal),
    };
    const bounded = await findBoundedOutputs(modelPath);
    const trials = new Trials(sets, evaluationSamples, { outputs, bounded, signal });
    trials.#checkResponse();
    return trials;
  }

  /** Accuracy of a candidate on a set of samples. */
  async compare(path: string, set: SetName): Promise<Accuracy> {
    const process = this.#idle.pop() ?? (await this.#startProcess());
    const work = this.#runCandidate(process, path, set);
    const results = await labelRuntimeErrors("result", work, this.#signal);
    this.#idle.push(process);
    const accuracy = this.#summarize(this.#sets[set], results);
    if (accuracy === undefined) throw new TypeError("No output is compared any more");
    return accuracy;
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
    return process;
  }

  async #runCandidate(
    process: RuntimeProcess,
    modelPath: string,
    set: SetName,
  ): Promise<TensorData[][]> {
    const key = "candidate";
    const opening = { do: "open", key, modelPath, optimize: true, ...runtime } as const;
    await process.request(opening, "open");
    const results: TensorData[][] = [];
    for (const index of this.#sets[set].samples.keys()) {
      const feed = `${set}-${index}`;
      const outputs = [...this.outputs];
      const reply = await process.request({ do: "run", key, feed, outputs }, "outputs");
      results.push(reply.tensors);
    }
    await process.request({ do: "close", key }, "closed");
    return results;
  }

  #checkResponse(): void {
    for (const set of Object.values(this.#sets)) {
      const own = set.samples.map(([, outputs]) => outputs);
      if (this.#summarize(set, own) !== undefined) continue;
      const problem = `hardly differ between the ${set.source.count} ${set.source.data} samples`;
      const message = `The original's outputs ${problem}, so that no loss of theirs can be searched`;
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

/** The calibration's samples where there is one, else those after the evaluation's. */
async function openSearchSamples(
  session: ModelSession,
  outputs: readonly string[],
  { recipe, dataPath, calibrationPath, ...options }: TrialOptions,
) {
  const { auto, evaluation } = recipe;
  const { calibration = { data: evaluation.data, generated: dataPath === undefined } } = recipe;
  return openCalibrationSamples(session, {
    ...options,
    outputs,
    recipe: {
      evaluation,
      calibration: { method: "auto", ...calibration, samples: auto?.samples ?? 1 },
    },
    calibrationPath: recipe.calibration === undefined ? dataPath : calibrationPath,
  });
}

async function record(
  session: ModelSession,
  source: ArraySource,
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
  return { source: { data: source.data, count: samples.length, unused: 0 }, samples };
}
