import type { FileHandle } from "node:fs/promises";
import { errorMessage } from "../../log/error-message.ts";
import { countElements } from "../onnx/count-elements.ts";
import { evaluationDataInvalidError } from "./evaluation-data-invalid-error.ts";
import { maxNpyPreambleBytes, parseNpyHeader, type NpyHeader } from "./npy-header.ts";
import type { SampleArray } from "./sample-array.ts";
import type { TensorSignature } from "./session-protocol.ts";
import { elementTypes } from "./tensor-data.ts";
import { readZipDirectory, readZipEntry, type ZipEntry } from "./zip-directory.ts";

/** Largest tensor of one sample, bytes: it is in memory as a whole. */
const maxTensorBytes = 1_073_741_824;
/** All tensors of one sample, bytes: they are in memory together. */
const maxSampleBytes = 2 * 1_073_741_824;
/** All arrays after decompression: a small archive can hold any number of zeros. */
const maxDataBytes = 256 * 1_073_741_824;

/** Finds an array for each input. @throws ServiceError evaluation_data_invalid */
export async function matchArraysToInputs(
  file: FileHandle,
  inputs: readonly TensorSignature[],
): Promise<SampleArray[]> {
  const entries = await readEntries(file);
  const inputNames = inputs.map(({ name }) => `"${name}"`).join(", ");
  for (const name of entries.keys()) {
    if (inputs.some((input) => input.name === name)) continue;
    throw evaluationDataInvalidError(
      `Array "${name}" is no input of the model, whose inputs are ${inputNames}`,
    );
  }
  const arrays: SampleArray[] = [];
  for (const input of inputs) {
    const entry = entries.get(input.name);
    if (!entry) {
      const message = `The evaluation data has no array "${input.name}"`;
      throw evaluationDataInvalidError(`${message}; the model's inputs are ${inputNames}`);
    }
    arrays.push(matchArrayToInput(input, entry, await readNpyHeader(file, entry)));
  }
  checkDataBytes(arrays);
  return arrays;
}

/** The archive's entries by the name of their array. */
async function readEntries(file: FileHandle): Promise<Map<string, ZipEntry>> {
  try {
    const entries = await readZipDirectory(file);
    return new Map(entries.map((entry) => [entry.name.replace(/\.npy$/, ""), entry]));
  } catch (error) {
    const message = `The evaluation data is no .npz file: ${errorMessage(error)}`;
    throw evaluationDataInvalidError(message, error);
  }
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
    const message = `Array "${entry.name}" cannot be read: ${errorMessage(error)}`;
    throw evaluationDataInvalidError(message, error);
  }
}

function matchArrayToInput(
  input: TensorSignature,
  entry: ZipEntry,
  header: NpyHeader,
): SampleArray {
  const { name } = input;
  const { dtype, type, shape, dataOffset } = header;
  const wanted = `[samples,${input.shape.map((size) => (size === "" ? "?" : size)).join()}]`;
  const actual = `Array "${name}" has shape [${shape.join()}] and dtype ${dtype}`;
  const expected = `${actual}; the model takes ${input.type} of shape ${wanted}`;
  if (type === undefined || type !== input.type) {
    throw evaluationDataInvalidError(`${expected}, little-endian`);
  }
  const [samples, ...rest] = shape;
  const isBatched = shape.length === input.shape.length && canBeOne(input.shape[0]);
  const sampleShape = isBatched ? [1, ...rest] : rest;
  if (!samples || !isShapeCompatible(sampleShape, input.shape)) {
    throw evaluationDataInvalidError(expected);
  }
  const bytes = countElements(shape) * elementTypes[type].bytes;
  checkArrayBytes(actual, { bytes, samples, fileBytes: entry.bytes - dataOffset });
  return { entry, name, type, shape: sampleShape, samples, dataOffset };
}

interface ArrayBytes {
  /** What the array's shape needs. */
  readonly bytes: number;
  readonly samples: number;
  /** What its file has. */
  readonly fileBytes: number;
}

function checkArrayBytes(actual: string, { bytes, samples, fileBytes }: ArrayBytes): void {
  if (bytes !== fileBytes) {
    const message = `${actual}, which takes ${bytes} bytes; its file holds ${fileBytes}`;
    throw evaluationDataInvalidError(message);
  }
  if (bytes / samples > maxTensorBytes) {
    const size = `${bytes / samples} bytes; at most ${maxTensorBytes} are allowed`;
    throw evaluationDataInvalidError(`${actual}, of which a sample takes ${size}`);
  }
}

/** What single arrays may have can still be too much together. */
function checkDataBytes(arrays: readonly SampleArray[]): void {
  let sampleBytes = 0;
  let dataBytes = 0;
  for (const { shape, type, samples } of arrays) {
    const bytes = countElements(shape) * elementTypes[type].bytes;
    sampleBytes += bytes;
    dataBytes += bytes * samples;
  }
  if (sampleBytes > maxSampleBytes) {
    const message = `A sample of the evaluation data takes ${sampleBytes} bytes`;
    throw evaluationDataInvalidError(`${message}; at most ${maxSampleBytes} are allowed`);
  }
  if (dataBytes > maxDataBytes) {
    const message = `The evaluation data takes ${dataBytes} bytes when it is decompressed`;
    throw evaluationDataInvalidError(`${message}; at most ${maxDataBytes} are allowed`);
  }
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
