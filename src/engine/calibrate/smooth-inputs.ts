import { setImmediate } from "node:timers/promises";
import { observeActivations, type Observed, type ObserveOptions } from "./observe-activations.ts";
import { usedRows } from "../runtime/used-rows.ts";
import { at } from "../onnx/at.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import type { SmoothedInput } from "../quantize/formats/smoothed-input.ts";
import { widenInputMagnitudes } from "../quantize/kernels/input-scales.ts";
import { SourceReader } from "../quantize/tasks/source-reader.ts";
import { defaultTileLimits } from "../quantize/tasks/tile-limits.ts";
import type { SourceWeight } from "../quantize/tasks/weight-task.ts";

/** A weight whose values are read, and the input of its products. */
export interface SmoothedWeight {
  readonly task: SourceWeight;
  readonly input: SmoothedInput;
}

/**
 * How much of the difficulty moves to the weights. MiniLM has 20.5 to 21.0 dB for any from 0.5 to
 * 0.9, the most from 0.75 to 0.8, and text recognition no less than without.
 */
const strength = 0.75;
/** Least magnitude of a channel that counts, relative to the largest: samples may have missed it. */
const least = 1e-3;

/**
 * The scales to divide the channels of products' inputs by, and to multiply their weights by, so
 * that a few large channels do not leave the others few codes: SmoothQuant, G. Xiao et al., arXiv
 * 2211.10438. Inputs with values that are not finite have none.
 * @returns the scales by the name of the input, and what was observed
 * @throws ServiceError those of observeActivations
 */
export async function smoothInputs(
  model: OnnxModel,
  weights: readonly SmoothedWeight[],
  options: ObserveOptions,
): Promise<{
  inputScales: ReadonlyMap<string, readonly number[]>;
  observed: Observed | undefined;
}> {
  const inputScales = new Map<string, readonly number[]>();
  if (weights.length === 0) return { inputScales, observed: undefined };
  const groups = Map.groupBy(weights, ({ input }) => input.name);
  const channels = new Map(
    Array.from(groups, ([name, group]) => [name, new ChannelMagnitudes(countInputs(group))]),
  );
  const observed = await observeActivations(model, [...groups.keys()], {
    ...options,
    visit: (tensor, mask) => {
      const found = channels.get(tensor.name);
      if (found === undefined) return;
      for (const rows of usedRows(tensor, found.largest.length, mask)) found.add(rows);
    },
  });
  for (const [name, { largest }] of channels) {
    await setImmediate();
    options.signal.throwIfAborted();
    const scales = chooseScales(largest, readMagnitudes(groups.get(name) ?? []));
    if (scales !== undefined) inputScales.set(name, scales);
  }
  return { inputScales, observed };
}

function countInputs(group: readonly SmoothedWeight[]): number {
  return at(group, 0).input.inputs;
}

/** The largest magnitude of each channel. */
class ChannelMagnitudes {
  readonly largest: Float64Array;

  constructor(channels: number) {
    this.largest = new Float64Array(channels);
  }

  add(rows: Float32Array): void {
    widenInputMagnitudes(rows, 0, { largest: this.largest, inner: 1 });
  }
}

/** The largest magnitude that the weights of a group have for each input. */
function readMagnitudes(group: readonly SmoothedWeight[]): Float64Array {
  const largest = new Float64Array(countInputs(group));
  for (const { task, input } of group) {
    using reader = new SourceReader(task);
    for (let start = 0; start < task.elements; start += defaultTileLimits.values) {
      const columns = Math.min(defaultTileLimits.values, task.elements - start);
      const values = reader.read({ start, rows: 1, columns, pitch: columns });
      widenInputMagnitudes(values, start, { largest, inner: input.inner });
    }
  }
  return largest;
}

function chooseScales(values: Float64Array, weights: Float64Array): number[] | undefined {
  const [value, weight] = [findLargest(values), findLargest(weights)];
  const isUsable = (largest: number) => largest > 0 && largest < Infinity;
  if (!isUsable(value) || !isUsable(weight)) return undefined;
  return Array.from(values, (each, input) => {
    const divisor = Math.max(at(weights, input), weight * least) ** (1 - strength);
    return Math.max(each, value * least) ** strength / divisor;
  });
}

/** NaN where one is. */
function findLargest(numbers: Float64Array): number {
  return numbers.reduce((largest, number) => Math.max(largest, number), 0);
}
