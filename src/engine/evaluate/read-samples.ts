import type { FileHandle } from "node:fs/promises";
import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import { countElements } from "../onnx/count-elements.ts";
import { evaluationDataInvalidError } from "./evaluation-data-invalid-error.ts";
import type { SampleArray } from "./sample-array.ts";
import { elementTypes, type Sample, type TensorData } from "./tensor-data.ts";
import { readZipEntry } from "./zip-directory.ts";

/** The samples in order, each read when the consumer wants it. */
export async function* readSamples(
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
