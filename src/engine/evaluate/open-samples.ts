import { setImmediate } from "node:timers/promises";
import { openCallerSamples } from "./caller-samples.ts";
import { chooseSizes, requireTensorInputs, type TrialOptions } from "./choose-sizes.ts";
import { generateSample } from "./generate-sample.ts";
import type { SizeChoice } from "./input-sizes.ts";
import type { RunnableModel } from "./runnable-model.ts";
import type { SampleSource } from "./sample-source.ts";
import type { TensorSignature } from "./session-protocol.ts";
import type { Sample } from "./tensor-data.ts";

interface SampleOptions extends TrialOptions {
  /** A local `.npz` file; without it, data is generated. */
  readonly dataPath?: string | undefined;
  readonly evaluation: { readonly samples: number };
}

/**
 * Opens the caller's data, or generates data of sizes on which the original runs.
 * @throws ServiceError evaluation_data_invalid if the data does not fit; evaluation_failed if none
 * can be generated
 */
export async function openSamples(
  original: RunnableModel,
  options: SampleOptions,
): Promise<SampleSource> {
  const inputs = requireTensorInputs(original);
  return options.dataPath === undefined
    ? createGeneratedSource(original, inputs, options)
    : openCallerSource(options.dataPath, inputs, options);
}

async function openCallerSource(
  path: string,
  inputs: readonly TensorSignature[],
  { evaluation }: SampleOptions,
): Promise<SampleSource> {
  const opened = await openCallerSamples(path, inputs);
  const count = Math.min(evaluation.samples, opened.count);
  return {
    data: "caller",
    count,
    unused: opened.count - count,
    samples: { [Symbol.asyncIterator]: () => takeSamples(opened.samples, count) },
    failureCode: "evaluation_data_invalid",
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

async function* takeSamples(samples: AsyncIterable<Sample>, count: number): AsyncGenerator<Sample> {
  let taken = 0;
  for await (const sample of samples) {
    yield sample;
    taken += 1;
    if (taken === count) return;
  }
}

/** Samples of a model without inputs would all be the same. */
async function createGeneratedSource(
  original: RunnableModel,
  inputs: readonly TensorSignature[],
  options: SampleOptions,
): Promise<SampleSource> {
  const choice = await chooseSizes(original, inputs, options);
  const count = inputs.length === 0 ? 1 : options.evaluation.samples;
  return {
    data: "generated",
    count,
    unused: 0,
    samples: { [Symbol.asyncIterator]: () => generateSamples(inputs, choice, count) },
    failureCode: "evaluation_failed",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function* generateSamples(
  inputs: readonly TensorSignature[],
  choice: SizeChoice,
  count: number,
): AsyncGenerator<Sample> {
  for (let seed = 0; seed < count; seed++) {
    // A large sample takes seconds: let the process hear meanwhile that it is to stop.
    await setImmediate();
    yield generateSample(inputs, choice, seed);
  }
}
