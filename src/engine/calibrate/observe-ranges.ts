import { observeActivations, type ObserveOptions } from "./observe-activations.ts";
import { tensorNumbers } from "../evaluate/tensor-data.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import type { ActivationRange } from "../quantize/plan-revision.ts";

/** Runs a model on the calibration's samples for the least and the largest of each value. */
export async function observeRanges(
  model: OnnxModel,
  values: readonly string[],
  options: ObserveOptions,
) {
  const ranges = new Map<string, ActivationRange>();
  const observed = await observeActivations(model, values, {
    ...options,
    visit: (tensor) => {
      let { low, high } = ranges.get(tensor.name) ?? { low: Infinity, high: -Infinity };
      for (const number of tensorNumbers(tensor)) {
        // A value that is not a number leaves neither as a number.
        low = Math.min(low, Number(number));
        high = Math.max(high, Number(number));
      }
      ranges.set(tensor.name, { low, high });
    },
  });
  return { observed, ranges };
}
