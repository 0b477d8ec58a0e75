import { open } from "node:fs/promises";
import { evaluationDataInvalidError } from "./evaluation-data-invalid-error.ts";
import { matchArraysToInputs } from "./match-arrays-to-inputs.ts";
import { readSamples } from "./read-samples.ts";
import type { SampleArray } from "./sample-array.ts";
import type { TensorSignature } from "./session-protocol.ts";
import type { Sample } from "./tensor-data.ts";

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
