import type { FileHandle } from "node:fs/promises";
import type { TensorSignature } from "../runtime/session-protocol.ts";
import { type ElementType, elementTypeNames, elementTypes } from "../runtime/tensor-data.ts";
import { readZipDirectory, readZipEntry, type ZipEntry } from "./zip-directory.ts";
import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import { countElements } from "../onnx/tensor-shape.ts";

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
      `Array "${name}" is not an input of the model, whose inputs are ${inputNames}`,
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
    const message = `The evaluation data is not an .npz file: ${errorMessage(error)}`;
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

/** Checks that an array's file has the bytes that its shape needs, and no more than are allowed. */
function checkArrayBytes(
  actual: string,
  { bytes, samples, fileBytes }: { bytes: number; samples: number; fileBytes: number },
): void {
  if (bytes !== fileBytes) {
    const message = `${actual}, which takes ${bytes} bytes; its file holds ${fileBytes}`;
    throw evaluationDataInvalidError(message);
  }
  if (bytes / samples > maxTensorBytes) {
    const size = `${bytes / samples} bytes; at most ${maxTensorBytes} are allowed`;
    throw evaluationDataInvalidError(`${actual}; a sample takes ${size}`);
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

/** An array of the archive that fits the input of its name. */
export interface SampleArray {
  readonly entry: ZipEntry;
  readonly name: string;
  readonly type: ElementType;
  /** Shape of one sample. */
  readonly shape: readonly number[];
  readonly samples: number;
  readonly dataOffset: number;
}

interface NpyHeader {
  readonly dtype: string;
  /** The element type that `dtype` names; undefined for those that no model takes. */
  readonly type: ElementType | undefined;
  readonly shape: readonly number[];
  /** Where the elements begin in the file, bytes. */
  readonly dataOffset: number;
}

const magic = Buffer.from("\u0093NUMPY", "latin1");
/** NumPy itself refuses longer headers of untrusted files from 10,000 bytes on. */
const maxHeaderBytes = 10_000;
/** NumPy's own limit since version 2. */
const maxRank = 64;
const headerPattern = new RegExp(
  [
    /^\{\s*'descr'\s*:\s*'([^']{2,16})'\s*,/,
    /\s*'fortran_order'\s*:\s*(True|False)\s*,/,
    /\s*'shape'\s*:\s*\(([\d\s,L]*)\)\s*,?\s*\}\s*$/,
  ]
    .map(({ source }) => source)
    .join(""),
);

/** Bytes of a `.npy` file in which any header ends that `parseNpyHeader` accepts. */
const maxNpyPreambleBytes = 12 + maxHeaderBytes;

/**
 * Parses the start of a `.npy` file (NEP 1; versions 1 to 3).
 * @throws SyntaxError or RangeError with the reason
 */
function parseNpyHeader(file: Buffer): NpyHeader {
  const { start, end } = locateHeader(file);
  const [, dtype, fortranOrder, shapeText] =
    headerPattern.exec(file.toString("utf8", start, end)) ?? [];
  if (dtype === undefined || shapeText === undefined) {
    throw new SyntaxError("Its header cannot be understood");
  }
  const shape = parseShape(shapeText);
  if (fortranOrder === "True" && shape.length > 1) {
    throw new SyntaxError("It is in Fortran order; store numpy.ascontiguousarray(...)");
  }
  return { dtype, type: findElementType(dtype), shape, dataOffset: end };
}

function locateHeader(file: Buffer): { start: number; end: number } {
  const version = file[6];
  if (file.length < 12 || !file.subarray(0, 6).equals(magic)) {
    throw new SyntaxError("It is not an .npy file");
  }
  if (version !== 1 && version !== 2 && version !== 3) {
    throw new SyntaxError(`Its .npy version is ${version}; versions 1 to 3 are read`);
  }
  const start = version === 1 ? 10 : 12;
  const length = version === 1 ? file.readUInt16LE(8) : file.readUInt32LE(8);
  if (length > maxHeaderBytes) {
    throw new RangeError(`Its header takes ${length} bytes; at most ${maxHeaderBytes} are read`);
  }
  if (start + length > file.length) throw new RangeError("Its header is truncated");
  return { start, end: start + length };
}

function parseShape(text: string): number[] {
  const shape = text
    .split(",")
    .map((size) => size.trim().replace(/L$/, ""))
    .filter((size) => size !== "")
    .map(Number);
  if (shape.length > maxRank) {
    throw new RangeError(`It has ${shape.length} dimensions; at most ${maxRank} are read`);
  }
  if (!shape.every(Number.isSafeInteger) || !Number.isSafeInteger(countElements(shape))) {
    throw new RangeError("Its shape is too large or not a list of sizes");
  }
  return shape;
}

function findElementType(dtype: string): ElementType | undefined {
  const littleEndian = dtype.replace(/^=/, "<").replace(/^[<>=](?=[iub]1$)/, "|");
  return elementTypeNames.find((type) => elementTypes[type].dtype === littleEndian);
}

/** The caller's evaluation data does not fit the model or cannot be read. */
export function evaluationDataInvalidError(message: string, cause?: unknown): ServiceError {
  return new ServiceError("evaluation_data_invalid", message, { cause });
}
