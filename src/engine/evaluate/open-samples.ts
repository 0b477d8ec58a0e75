import { ServiceError } from "../../contract/errors.ts";
import type { Accuracy } from "../../contract/telemetry.ts";
import { errorMessage } from "../../log/error-message.ts";
import { openCallerSamples } from "./caller-samples.ts";
import { generateSample } from "./generate-sample.ts";
import { sizeChoices, type SizeChoice } from "./input-sizes.ts";
import type { ModelSession } from "./model-session.ts";
import type { TensorSignature } from "./session-protocol.ts";
import { type Sample, type TensorData } from "./tensor-data.ts";
import { countElements } from "../onnx/count-elements.ts";

/** Samples to run both models on. */
export interface SampleSource extends AsyncDisposable {
  readonly data: Accuracy["data"];
  readonly count: number;
  readonly samples: AsyncIterable<Sample>;
  /** Error code if the original cannot be run on them. */
  readonly failureCode: "evaluation_data_invalid" | "evaluation_failed";
}

interface SampleOptions {
  dataPath?: string | undefined;
  evaluation: { samples: number };
  outputs: readonly string[];
  signal: AbortSignal;
}

type RunOptions = Pick<SampleOptions, "outputs" | "signal">;

/** Opens the caller's data, or generates data of sizes on which the original runs. */
export async function openSamples(
  original: ModelSession,
  options: SampleOptions,
): Promise<SampleSource> {
  const inputs = tensorInputs(original);
  return options.dataPath === undefined
    ? createGeneratedSource(original, inputs, options)
    : openCallerSource(options.dataPath, inputs, options);
}

/** @throws ServiceError evaluation_failed for an input that takes no tensor. */
function tensorInputs({ signature }: ModelSession): TensorSignature[] {
  return signature.inputs.map((input) => {
    if (input.isTensor) return input;
    throw new ServiceError(
      "evaluation_failed",
      `Input "${input.name}" takes no tensor, which cannot be evaluated`,
    );
  });
}

/** Generates a sample on which the model runs, and runs it. */
export async function runOnGeneratedSample(
  model: ModelSession,
  options: RunOptions,
): Promise<{ sample: Sample; outputs: TensorData[] }> {
  const inputs = tensorInputs(model);
  const sample = generateSample(inputs, await chooseSizes(model, inputs, options), 0);
  return { sample, outputs: await model.run(sample, options.outputs) };
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
    samples: takeSamples(opened.samples, count),
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

async function createGeneratedSource(
  original: ModelSession,
  inputs: readonly TensorSignature[],
  { evaluation, outputs, signal }: SampleOptions,
): Promise<SampleSource> {
  const choice = await chooseSizes(original, inputs, { outputs, signal });
  return {
    data: "generated",
    count: evaluation.samples,
    samples: generateSamples(inputs, choice, evaluation.samples),
    failureCode: "evaluation_failed",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function* generateSamples(
  inputs: readonly TensorSignature[],
  choice: SizeChoice,
  count: number,
): AsyncGenerator<Sample> {
  for (let seed = 0; seed < count; seed++) yield generateSample(inputs, choice, seed);
}

/** The first choice of sizes on which the original runs and has at least one output element. */
async function chooseSizes(
  original: ModelSession,
  inputs: readonly TensorSignature[],
  options: RunOptions,
): Promise<SizeChoice> {
  const tried = new Set<string>();
  let refusal: Error | undefined;
  for (const choice of sizeChoices) {
    const sample = generateSample(inputs, choice, 0);
    const key = `${describeShapes(sample)} ${choice.idLimit}`;
    if (tried.has(key)) continue;
    tried.add(key);
    const error = await trySample(original, sample, options);
    if (error === undefined) return choice;
    refusal ??= error;
  }
  const advice = `give evaluation data. ${refusal?.message ?? ""}`;
  throw new ServiceError(
    "evaluation_failed",
    `The original runs on none of ${tried.size} generated inputs; ${advice}`,
    { cause: refusal },
  );
}

/** Why a sample cannot be used; undefined where it can. */
async function trySample(
  original: ModelSession,
  sample: Sample,
  { outputs, signal }: RunOptions,
): Promise<Error | undefined> {
  const shapes = describeShapes(sample);
  try {
    const tensors = await original.run(sample, outputs);
    const isEmpty = tensors.every(({ shape }) => countElements(shape) === 0);
    return isEmpty ? new Error(`Its outputs are empty on ${shapes}`) : undefined;
  } catch (error) {
    signal.throwIfAborted();
    return new Error(`On ${shapes}: ${errorMessage(error)}`, { cause: error });
  }
}

export function describeShapes(sample: Sample): string {
  return sample.map(({ name, type, shape }) => `${name}: ${type}[${shape.join()}]`).join(", ");
}
