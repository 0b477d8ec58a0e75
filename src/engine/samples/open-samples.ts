import { type FileHandle, open } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { describeShapes, requireTensorInputs, type TrialOptions } from "./generate-sample.ts";
import { createTokenStep } from "./language-inputs.ts";
import { evaluationDataInvalidError, matchArraysToInputs, type SampleArray } from "./npy-arrays.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import type { TensorSignature } from "../runtime/session-protocol.ts";
import { elementTypes, type Sample, type TensorData } from "../runtime/tensor-data.ts";
import { readZipEntry } from "./zip-directory.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Accuracy, GeneratedInput } from "../../contract/jobs/telemetry.ts";
import { errorMessage } from "../../log/error-message.ts";
import { openModel } from "../onnx/open-model.ts";
import { countElements } from "../onnx/tensor-shape.ts";
import { type GeneratedSamples, planGeneratedSamples } from "./generated-samples.ts";
import type { TokenWindow } from "./token-windows.ts";
import { findInputContents } from "./input-content.ts";

export interface SampleOptions extends TrialOptions {
  /** The original's ONNX file, which says what its inputs hold. */
  readonly modelPath: string;
  /** A local `.npz` file; without it, data is generated. */
  readonly dataPath?: string | undefined;
  readonly evaluation: {
    readonly samples: number;
    /** Number of the first generated sample; 0 where it is absent. */
    readonly firstGenerated?: number;
    /** How many of the file's samples after these something else uses. */
    readonly otherSamples?: number | undefined;
  };
}

/**
 * Opens the caller's data, or generates data of sizes on which the original runs.
 * @throws ServiceError evaluation_data_invalid if the data does not fit; evaluation_failed if none
 * can be generated
 */
export async function openSamples(
  original: RunnableModel,
  options: SampleOptions,
): Promise<ArraySource> {
  const inputs = requireTensorInputs(original);
  return options.dataPath === undefined
    ? createGeneratedSource(original, inputs, options)
    : openCallerSource(options.dataPath, inputs, options);
}

async function openCallerSource(
  path: string,
  inputs: readonly TensorSignature[],
  { evaluation }: SampleOptions,
): Promise<ArraySource> {
  const opened = await openCallerSamples(path, inputs);
  const { samples, otherSamples = 0 } = evaluation;
  const count = Math.min(samples, opened.count);
  return {
    data: "caller",
    count,
    unused: opened.count - count - otherSamples,
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
  { modelPath, evaluation, ...options }: SampleOptions,
): Promise<ArraySource> {
  const model = await openModel(modelPath, Number.MAX_SAFE_INTEGER);
  const filled = findInputContents(model, inputs, original.signature.outputs);
  const count = inputs.length === 0 ? 1 : evaluation.samples;
  const { firstGenerated: first = 0 } = evaluation;
  const samples = await planGeneratedSamples(original, filled, { ...options, count, first });
  return {
    data: "generated",
    generated: samples.description,
    count,
    unused: 0,
    samples: { [Symbol.asyncIterator]: () => generateSamples(samples) },
    failureCode: "evaluation_failed",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function* generateSamples({ count, generate }: GeneratedSamples): AsyncGenerator<Sample> {
  for (let index = 0; index < count; index++) {
    // A large sample takes seconds: let the process hear meanwhile that it is to stop.
    await setImmediate();
    yield generate(index);
  }
}

interface CallerSamples extends AsyncDisposable {
  readonly count: number;
  /** In order, each read when it is wanted; each iteration starts with the first. */
  readonly samples: AsyncIterable<Sample>;
}

/**
 * Opens a `.npz` file with an array for each input, stacked along a first axis of samples. An array
 * that has the input's own rank counts as samples of batch size 1. The file stays open until the
 * returned object is disposed of.
 * @throws ServiceError evaluation_data_invalid with the array and what the model takes
 */
export async function openCallerSamples(
  path: string,
  inputs: readonly TensorSignature[],
): Promise<CallerSamples> {
  if (inputs.length === 0) {
    throw evaluationDataInvalidError(
      "The model has no inputs, so that there is nothing to evaluate it on",
    );
  }
  const file = await open(path);
  try {
    const arrays = await matchArraysToInputs(file, inputs);
    const count = countSamples(arrays);
    return {
      count,
      samples: { [Symbol.asyncIterator]: () => readSamples(file, arrays, count) },
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

function countSamples(arrays: readonly SampleArray[]): number {
  const [first] = arrays;
  for (const { name, samples } of arrays) {
    if (first === undefined || samples === first.samples) continue;
    const expected = `array "${first.name}" has ${first.samples}`;
    throw evaluationDataInvalidError(`Array "${name}" has ${samples} samples and ${expected}`);
  }
  return first?.samples ?? 0;
}

/** The samples in order, each read when the consumer wants it. */
async function* readSamples(
  file: FileHandle,
  arrays: readonly SampleArray[],
  count: number,
): AsyncGenerator<Sample, void, undefined> {
  const readers = arrays.map((array) => readTensors(file, array));
  try {
    for (let sample = 0; sample < count; sample++) {
      const tensors = await Promise.all(readers.map((reader) => reader.next()));
      yield tensors.flatMap(({ value }) => (value ? [value] : []));
    }
  } catch (error) {
    throw error instanceof ServiceError
      ? error
      : evaluationDataInvalidError(`The evaluation data is damaged: ${errorMessage(error)}`, error);
  } finally {
    await Promise.all(readers.map((reader) => reader.return()));
  }
}

/** Cuts the entry's bytes into tensors of one sample each. */
async function* readTensors(
  file: FileHandle,
  array: SampleArray,
): AsyncGenerator<TensorData, void, undefined> {
  const { name, type, shape } = array;
  const size = countElements(shape) * elementTypes[type].bytes;
  while (size === 0) yield { name, type, shape: [...shape], bytes: new Uint8Array() };
  let toSkip = array.dataOffset;
  let bytes = new Uint8Array(size);
  let filled = 0;
  for await (let chunk of readZipEntry(file, array.entry)) {
    const skipped = Math.min(toSkip, chunk.length);
    toSkip -= skipped;
    chunk = chunk.subarray(skipped);
    while (chunk.length > 0) {
      const taken = chunk.subarray(0, size - filled);
      bytes.set(taken, filled);
      filled += taken.length;
      chunk = chunk.subarray(taken.length);
      if (filled < size) continue;
      yield { name, type, shape: [...shape], bytes };
      bytes = new Uint8Array(size);
      filled = 0;
    }
  }
  throw evaluationDataInvalidError(`Array "${name}" ends before its last sample`);
}

/** Most bytes of all samples together; the first one may have more. */
const maxBytes = 256 * 1024 ** 2;

/**
 * The first sample of each shape, as many as are reasonable to keep in memory; of generated samples
 * only the first, since their shapes are arbitrary. After the first window of tokens comes a step
 * that generates one.
 */
export async function findDistinctSamples(
  { data, windows, samples }: Pick<SampleSource, "data" | "windows" | "samples">,
  provider: "cpu" | "cuda",
): Promise<Sample[]> {
  const byShape = new Map<string, Sample>();
  let bytes = 0;
  for await (const sample of samples) {
    const shapes = describeShapes(sample);
    if (byShape.has(shapes)) continue;
    bytes += sample.reduce((sum, tensor) => sum + tensor.bytes.length, 0);
    if (byShape.size > 0 && bytes > maxBytes) break;
    byShape.set(shapes, sample);
    if (windows !== undefined && byShape.size === 1) {
      const step = createTokenStep(sample, provider);
      byShape.set(describeShapes(step), step);
    }
    if (data !== "caller") break;
  }
  return [...byShape.values()];
}

/** Samples to run both models on. */
export interface SampleSource extends AsyncDisposable {
  readonly data: Accuracy["data"];
  /** What was generated for each input; absent for the caller's data. */
  readonly generated?: GeneratedInput[];
  /** Tokens of each sample, where it is a window of them. */
  readonly windows?: readonly TokenWindow[];
  readonly count: number;
  /** Samples of the caller beyond `count`. */
  readonly unused: number;
  /** In order; each iteration starts with the first. */
  readonly samples: AsyncIterable<Sample>;
  /** Error code if the original cannot be run on them. */
  readonly failureCode: "evaluation_data_invalid" | "evaluation_failed";
}

/** Samples with an array for each input of the model. */
export interface ArraySource extends SampleSource {
  readonly data: "caller" | "generated";
}
