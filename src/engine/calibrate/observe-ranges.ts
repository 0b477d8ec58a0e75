import { observeActivations, type ObserveOptions } from "./observe-activations.ts";
import { ValueHistogram } from "./value-histogram.ts";
import { tensorNumbers } from "../evaluate/tensor-data.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";

/** Runs a model on the calibration's samples, and counts the numbers of each value. */
export async function observeRanges(
  model: OnnxModel,
  values: readonly string[],
  options: ObserveOptions,
) {
  const histograms = new Map<string, ValueHistogram>();
  const observed = await observeActivations(model, values, {
    ...options,
    visit: (tensor) => {
      const histogram = histograms.get(tensor.name) ?? new ValueHistogram();
      histograms.set(tensor.name, histogram);
      const numbers = tensorNumbers(tensor);
      histogram.add(numbers instanceof Float32Array ? numbers : Array.from(numbers, Number));
    },
  });
  return { observed, histograms };
}
