import { open, type FileHandle } from "node:fs/promises";
import { ServiceError } from "../../contract/errors.ts";
import { maxNpyPreambleBytes, parseNpyHeader, type NpyHeader } from "./npy-header.ts";
import type { TensorSignature } from "./session-protocol.ts";
import { elementTypes, type ElementType, type Sample, type TensorData } from "./tensor-data.ts";
import { countElements } from "../onnx/count-elements.ts";
import { readZipDirectory, readZipEntry, type ZipEntry } from "./zip-directory.ts";
import { errorMessage } from "../../log/error-message.ts";

/** Largest tensor of one sample, bytes: it is held in memory as a whole. */
const maxTensorBytes = 1_073_741_824;

/** An array of the archive, fitted to the input of its name. */
interface SampleArray {
  readonly entry: ZipEntry;
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly samples: number;
  readonly dataOffset: number;
}

export interface CallerSamples {
  readonly count: number;
  /** The samples in order, each read when it is asked for. */
  readonly samples: AsyncIterable<Sample>;
}

/**
 * Opens a `.npz` file that holds an array for each input, stacked along a first axis of samples. An array that has the input's own
 * rank counts as samples of batch size 1. The file stays open until the returned object is disposed of.
 *
 * @throws ServiceError evaluation_data_invalid that names the array and what the model takes.
 */
export async function openCallerSamples(
  path: string,
  inputs: readonly TensorSignature[],
): Promise<CallerSamples & AsyncDisposable> {
  const file = await open(path);
  try {
    const arrays = await matchArraysToInputs(file, inputs);
    const [first] = arrays;
    if (!first)
      throw evaluationDataInvalidError(
        "The model has no inputs, so that there is nothing to evaluate it on",
      );
    for (const { name, samples } of arrays) {
      if (samples !== first.samples) {
        throw evaluationDataInvalidError(
          `Array "${name}" has ${samples} samples and array "${first.name}" has ${first.samples}`,
        );
      }
    }
    return {
      count: first.samples,
      samples: readSamples(file, arrays, first.samples),
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

function evaluationDataInvalidError(message: string, cause?: unknown): ServiceError {
  return new ServiceError("evaluation_data_invalid", message, { cause });
}

async function matchArraysToInputs(
  file: FileHandle,
  inputs: readonly TensorSignature[],
): Promise<SampleArray[]> {
  const entries = await readZipDirectory(file).catch((error: unknown) => {
    throw evaluationDataInvalidError(
      `The evaluation data is no .npz file: ${errorMessage(error)}`,
      error,
    );
  });
  const byName = new Map(entries.map((entry) => [entry.name.replace(/\.npy$/, ""), entry]));
  const inputNames = inputs.map(({ name }) => `"${name}"`).join(", ");
  for (const name of byName.keys()) {
    if (!inputs.some((input) => input.name === name)) {
      throw evaluationDataInvalidError(
        `Array "${name}" is no input of the model, whose inputs are ${inputNames}`,
      );
    }
  }
  const arrays: SampleArray[] = [];
  for (const input of inputs) {
    const entry = byName.get(input.name);
    if (!entry)
      throw evaluationDataInvalidError(
        `The evaluation data has no array "${input.name}"; the model's inputs are ${inputNames}`,
      );
    arrays.push(matchArrayToInput(input, entry, await readNpyHeader(file, entry)));
  }
  return arrays;
}

async function readNpyHeader(file: FileHandle, entry: ZipEntry): Promise<NpyHeader> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of readZipEntry(file, entry)) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= maxNpyPreambleBytes) break;
    }
    return parseNpyHeader(Buffer.concat(chunks));
  } catch (error) {
    throw evaluationDataInvalidError(
      `Array "${entry.name}" cannot be read: ${errorMessage(error)}`,
      error,
    );
  }
}

function matchArrayToInput(
  input: TensorSignature,
  entry: ZipEntry,
  { dtype, type, shape, dataOffset }: NpyHeader,
): SampleArray {
  const { name } = input;
  const wanted = `[samples,${input.shape.map((size) => (size === "" ? "?" : size)).join()}]`;
  const actual = `Array "${name}" has shape [${shape.join()}] and dtype ${dtype}`;
  if (type === undefined || type !== input.type) {
    throw evaluationDataInvalidError(
      `${actual}; the model takes ${input.type} of shape ${wanted}, little-endian`,
    );
  }
  const [samples, ...sampleShape] = shape;
  const batched = shape.length === input.shape.length && canBeOne(input.shape[0]);
  const fitted = batched ? [1, ...sampleShape] : sampleShape;
  if (samples === undefined || samples === 0 || !isShapeCompatible(fitted, input.shape)) {
    throw evaluationDataInvalidError(`${actual}; the model takes ${input.type} of shape ${wanted}`);
  }
  const bytes = countElements(shape) * elementTypes[type].bytes;
  if (dataOffset + bytes !== entry.bytes) {
    throw evaluationDataInvalidError(
      `${actual}, which takes ${bytes} bytes; its file holds ${entry.bytes - dataOffset}`,
    );
  }
  if (bytes / samples > maxTensorBytes) {
    throw evaluationDataInvalidError(
      `${actual}, of which a sample takes ${bytes / samples} bytes; at most ${maxTensorBytes} are allowed`,
    );
  }
  return { entry, name, type, shape: fitted, samples, dataOffset };
}

function canBeOne(size: number | string | undefined): boolean {
  return typeof size === "string" || size === 1;
}

function isShapeCompatible(shape: readonly number[], wanted: TensorSignature["shape"]): boolean {
  return (
    shape.length === wanted.length &&
    wanted.every((size, axis) => typeof size === "string" || size === shape[axis])
  );
}

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
