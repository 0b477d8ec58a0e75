import { observeActivations, type ObserveOptions } from "./observe-activations.ts";
import { ValueHistogram } from "./value-histogram.ts";
import { at } from "../onnx/at.ts";
import { countElements } from "../onnx/tensor-shape.ts";
import { tensorNumbers } from "../runtime/tensor-data.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";

interface RangedValues {
  readonly values: readonly string[];
  /** Those whose channels are averaged, which are axis 1. */
  readonly averaged: readonly string[];
}

/** Runs a model on the calibration's samples, and counts or averages the numbers of values. */
export async function observeRanges(
  model: OnnxModel,
  { values, averaged }: RangedValues,
  options: ObserveOptions,
) {
  const histograms = new Map(values.map((name) => [name, new ValueHistogram()]));
  const sums = new Map(averaged.map((name) => [name, new ChannelSums()]));
  const observed = await observeActivations(model, [...new Set([...values, ...averaged])], {
    ...options,
    visit: (tensor) => {
      const found = tensorNumbers(tensor);
      const numbers = found instanceof Float32Array ? found : Float32Array.from(found, Number);
      histograms.get(tensor.name)?.add(numbers);
      sums.get(tensor.name)?.add(numbers, tensor.shape);
    },
  });
  const means = Array.from(sums, ([name, each]) => [name, each.means()] as const);
  const inputMeans = new Map(means.filter(([, each]) => each.every(Number.isFinite)));
  return { observed, histograms, inputMeans };
}

class ChannelSums {
  #sums = new Float64Array();
  /** Numbers of a channel. */
  #count = 0;

  add(numbers: Float32Array, [batch = 1, channels = 1, ...sizes]: readonly number[]): void {
    if (this.#count === 0) this.#sums = new Float64Array(channels);
    const inner = countElements(sizes);
    for (let row = 0; row < batch * channels; row++) {
      let sum = 0;
      for (let index = row * inner; index < (row + 1) * inner; index++) sum += at(numbers, index);
      this.#sums[row % channels] = at(this.#sums, row % channels) + sum;
    }
    this.#count += batch * inner;
  }

  means(): number[] {
    return Array.from(this.#sums, (sum) => sum / this.#count);
  }
}
