import type { ValueTile } from "../kernels/channel-layout.ts";
import { at } from "../../onnx/at.ts";

/** What a product takes on average, and how its weight lies along that and along its outputs. */
export interface MeanInputs {
  readonly means: readonly number[];
  /** Groups of outputs, each with inputs of its own. */
  readonly groups: number;
  readonly outputs: number;
  /** Values of the weight between two outputs, and between two inputs of a group. */
  readonly steps: { readonly output: number; readonly input: number };
}

interface RoundedValues {
  readonly codes: Int8Array;
  /** One, or one for each output from the first channel on. */
  readonly scales: Float32Array;
  readonly firstChannel: number;
}

/** Adds what rounding some of a weight's values changes in each output on average. */
export function addMeanErrors(
  { values, start }: ValueTile,
  { codes, scales, firstChannel }: RoundedValues,
  { means, groups, outputs, steps }: MeanInputs,
  errors: Float64Array,
): void {
  const [groupInputs, groupOutputs] = [means.length / groups, outputs / groups];
  const isVector = scales.length > 1 || firstChannel > 0;
  for (let position = 0; position < values.length; position++) {
    const index = start + position;
    const output = Math.floor(index / steps.output) % outputs;
    const first = Math.floor(output / groupOutputs) * groupInputs;
    const input = first + (Math.floor(index / steps.input) % groupInputs);
    const rounded = at(codes, position) * at(scales, isVector ? output - firstChannel : 0);
    const error = rounded - at(values, position);
    errors[output] = at(errors, output) + error * at(means, input);
  }
}
