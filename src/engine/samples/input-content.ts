import { findAttribute } from "../onnx/node-attributes.ts";
import type { GraphProto, NodeProto } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import type { ModelSignature, TensorSignature } from "../runtime/session-protocol.ts";
import { maxLineHeight } from "./draw-image.ts";
import { GraphValues } from "./graph-values.ts";
import {
  byteNormalization,
  findNormalization,
  type ImageNormalization,
} from "./image-normalization.ts";

/** What an input holds, as far as the model says it. */
export type InputContent =
  | {
      readonly kind: "image";
      readonly channelsLast: boolean;
      readonly normalization: ImageNormalization;
      /** Whether the model was trained on bright pictures. */
      readonly bright: boolean;
      /** Whether it is a line of text. */
      readonly isLine: boolean;
      /** Whether lines are upside down at times, as for a model that says which ones are. */
      readonly turnsLines: boolean;
    }
  | { readonly kind: "sound" }
  | { readonly kind: "tokens"; readonly vocabulary: number }
  | { readonly kind: "state"; readonly output: string };

/** An input of a model, and what to generate for it; values by name and type where it is absent. */
export interface SampleInput extends TensorSignature {
  readonly content?: InputContent;
}

/** Finds what the tensors of a model's inputs hold. */
export function findInputContents(
  model: OnnxModel,
  inputs: readonly TensorSignature[],
  outputs: ModelSignature["outputs"],
): SampleInput[] {
  const { graph } = model.proto;
  if (graph === undefined) return [...inputs];
  const values = new GraphValues(model, graph);
  const states = new Map(
    inputs.flatMap((input) => {
      const output = findNextState(input, outputs);
      return output === undefined ? [] : [[input.name, output] as const];
    }),
  );
  const surroundings = { inputs, outputs, values, states, readsLines: readsLines(graph) };
  return inputs.map((input) => {
    const content = findContent(input, surroundings);
    return content === undefined ? input : { ...input, content };
  });
}

/** Whether strides shrink the height of pictures more than the width, as those of lines. */
export function readsLines({ node: nodes }: GraphProto): boolean {
  return nodes.some((node) => {
    const [down, across, ...others] = findAttribute(node, "strides")?.ints ?? [];
    return down !== undefined && across !== undefined && others.length === 0 && down > across;
  });
}

interface Surroundings {
  readonly inputs: readonly TensorSignature[];
  readonly outputs: ModelSignature["outputs"];
  readonly values: GraphValues;
  readonly readsLines: boolean;
  readonly states: ReadonlyMap<string, string>;
}

function findContent(input: TensorSignature, surroundings: Surroundings): InputContent | undefined {
  const { inputs, values, states } = surroundings;
  const output = states.get(input.name);
  if (output !== undefined) return { kind: "state", output };
  if (/^u?int/.test(input.type) && input.type !== "uint8") return findTokens(input, values);
  if (!/^float|^uint8/.test(input.type) || /mask/i.test(input.name)) return undefined;
  const axis = findChannelAxis(input);
  if (axis !== undefined) return findImage(input, axis, surroundings);
  return isSound(input, inputs, states.size > 0) ? { kind: "sound" } : undefined;
}

/** Axis of the channels of a picture: gray, colors, or colors with opacity. */
function findChannelAxis({ shape }: TensorSignature): 1 | 3 | undefined {
  if (shape.length !== 4) return undefined;
  if (isChannelCount(shape[1])) return 1;
  return isChannelCount(shape[3]) ? 3 : undefined;
}

function isChannelCount(size: number | string | undefined): size is 1 | 3 | 4 {
  return size === 1 || size === 3 || size === 4;
}

/** Least mean of pixels of pictures that are pages rather than photographs. */
const leastBright = 0.7;

function findImage(input: TensorSignature, axis: 1 | 3, surroundings: Surroundings): InputContent {
  const { values, outputs } = surroundings;
  const height = input.shape[axis === 1 ? 2 : 1];
  const isLine = typeof height === "number" ? height <= maxLineHeight : surroundings.readsLines;
  // Readers have a row for each place of a line, and classifiers one for the line.
  const turnsLines = outputs.every(({ isTensor, ...each }) => {
    return !isTensor || ("shape" in each && each.shape.length <= 2);
  });
  const channels = Number(input.shape[axis]);
  const found = findNormalization(values, input.name, { channels, isLine });
  const normalization = input.type === "uint8" ? byteNormalization : found.normalization;
  const bright = (found.brightness ?? 0) >= leastBright;
  return { kind: "image", channelsLast: axis === 3, normalization, bright, isLine, turnsLines };
}

/** A waveform: at least 256 values in a row, or as many as there are. */
const leastWindow = 256;

function isSound(
  { name, shape }: TensorSignature,
  inputs: readonly TensorSignature[],
  hasStates: boolean,
): boolean {
  const last = shape.at(-1);
  if (last === undefined || shape.length > 3) return false;
  if (typeof last === "number" && last < leastWindow) return false;
  if (shape.slice(0, -1).some((size) => typeof size === "number" && size !== 1)) return false;
  const named = /audio|wave|wav\b|pcm|speech|sound|signal|input_values/i.test(name);
  const hasRate = inputs.some((input) => /^sr$|sampl.*rate/i.test(input.name));
  return named || hasRate || (hasStates && shape.length === 2);
}

/** Rows of the table that an input's elements look up are its vocabulary. */
function findTokens({ name }: TensorSignature, values: GraphValues): InputContent | undefined {
  if (/mask|type|segment|position|length/i.test(name)) return undefined;
  for (const [node, value] of values.takers(name)) {
    const table = findTable(node, value);
    const [vocabulary] = values.constantDims(table ?? "") ?? [];
    if (vocabulary !== undefined && vocabulary > 1) return { kind: "tokens", vocabulary };
  }
  return undefined;
}

function findTable({ opType, input }: NodeProto, value: string): string | undefined {
  const isLookup = opType === "Gather" || opType === "GatherBlockQuantized";
  if (isLookup && input[1] === value) return input[0];
  return opType === "EmbedLayerNormalization" && input[0] === value ? input[2] : undefined;
}

const stateName = /state|hidden|cell|cache|memory|past|prev|^[hc](_?(in|0|prev))?$/i;

/** The names that an input's next value may have as an output. */
function nextStateNames(name: string): string[] {
  const suffixes = ["n", "N", "_n", "_out", "Out", "_new", "_next", "_output"];
  return [
    ...suffixes.map((suffix) => `${name}${suffix}`),
    ...["out_", "new_", "next_"].map((prefix) => `${prefix}${name}`),
    name.replace("past_key_values", "present"),
    name.replace("past", "present"),
    name.replace("input", "output"),
    name.replace(/(^|_)in(?=_|$)/, "$1out"),
    name.replace("prev", "next"),
  ].filter((next) => next !== name);
}

/** The output whose value a later step takes as this input. */
function findNextState(
  { name, type, shape }: TensorSignature,
  outputs: ModelSignature["outputs"],
): string | undefined {
  if (!type.startsWith("float") || !stateName.test(name)) return undefined;
  const names = nextStateNames(name);
  const fits = (output: ModelSignature["outputs"][number]) =>
    output.isTensor &&
    output.type === type &&
    output.shape.length === shape.length &&
    names.includes(output.name);
  return outputs.find(fits)?.name;
}
