import { inputShape, type SizeChoice, sizeChoices } from "./input-sizes.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import { RuntimeCrashError } from "../runtime/runtime-process.ts";
import type { TensorSignature } from "../runtime/session-protocol.ts";
import {
  type ElementType,
  elementTypes,
  isElementType,
  type Sample,
  type TensorData,
  tensorElements,
} from "../runtime/tensor-data.ts";
import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import { countElements } from "../onnx/tensor-shape.ts";
import { drawImage, maxLineHeight } from "./draw-image.ts";
import type { InputContent, SampleInput } from "./input-content.ts";
import { speak } from "./speak.ts";
import { writeSentences } from "./write-sentences.ts";

/** Largest generated sample, all inputs together, bytes: it is in memory as a whole. */
const maxSampleBytes = 1_073_741_824;

/** Values of sound a second; what voice models take. */
const soundRate = 16_000;

interface Filling {
  pattern: RegExp;
  value: (index: number, lastSize: number, past: number) => number;
}

/** Values of inputs by their names; integers and flags only, so that float features vary. */
const namedFillings: readonly Filling[] = [
  { pattern: /mask/i, value: () => 1 },
  { pattern: /token_type|segment/i, value: () => 0 },
  { pattern: /position/i, value: (index, lastSize, past) => past + (index % lastSize) },
  { pattern: /^sr$|sample_?rate|sampling_?rate/i, value: () => soundRate },
  { pattern: /length|_len$|^len/i, value: (_, lastSize) => lastSize },
  { pattern: /use_cache|past/i, value: () => 0 },
];

/** Limits of features of narrow integer types, such as pixels. */
const narrowLimits: Partial<Record<ElementType, number>> = { uint8: 256, int8: 128 };

/**
 * Generates a sample that fits the signature: pictures, sound and sentences where an input holds
 * such, and zeros for a state before the first step; for others floats of the standard normal
 * distribution (ones for masks), small non-negative integers, and true flags. The same seed
 * generates the same sample, and sound goes on from one seed to the next.
 * @throws ServiceError evaluation_failed for an input that cannot be generated, and for a sample
 * that is too large
 */
export function generateSample(
  inputs: readonly SampleInput[],
  choice: SizeChoice,
  seed: number,
): Sample {
  const random = createRandom(seed);
  const toFill = inputs.map((input) => {
    const { name, content } = input;
    return { name, content, type: generatedType(input), shape: inputShape(input, choice) };
  });
  checkSampleBytes(toFill);
  return toFill.map(({ content, ...input }) => {
    const bytes = new Uint8Array(inputBytes(input));
    const value =
      content === undefined
        ? chooseElementValues(input, choice, random)
        : createContentValues(content, input, seed, random);
    fillTensor(bytes, input.type, value);
    return { ...input, bytes };
  });
}

function createContentValues(
  content: InputContent,
  { shape }: InputToFill,
  seed: number,
  random: () => number,
): (index: number) => number {
  switch (content.kind) {
    case "image":
      return createPixels(content, shape, seed, random);
    case "sound": {
      const length = countElements(shape);
      const sound = speak({ start: seed * length, length, rate: soundRate });
      return (index) => sound[index] ?? 0;
    }
    case "tokens": {
      const length = shape.at(-1) ?? 1;
      const ids = Array.from({ length: countElements(shape) / Math.max(1, length) }, () =>
        writeSentences(length, content.vocabulary, random),
      ).flat();
      return (index) => ids[index] ?? 0;
    }
    case "state":
      return () => 0;
  }
}

function createPixels(
  { channelsLast, normalization, bright, turnsLines }: Extract<InputContent, { kind: "image" }>,
  shape: readonly number[],
  seed: number,
  random: () => number,
): (index: number) => number {
  const [, first = 1, second = 1, third = 1] = shape;
  const [channels, height, width] = channelsLast ? [third, first, second] : [first, second, third];
  const area = height * width;
  const pixels = drawImage({ width, height, bright, turnsLines }, seed, random);
  return (index) => {
    const channel = channelsLast ? index % channels : Math.floor(index / area) % channels;
    const at = channelsLast ? Math.floor(index / channels) % area : index % area;
    // A picture of one channel has the green one; opacity is full.
    const pixel = channel > 2 ? 1 : (pixels[(channels === 1 ? 1 : channel) * area + at] ?? 0);
    const plane = Math.min(channel, 2);
    return (pixel - (normalization.mean[plane] ?? 0)) / (normalization.deviation[plane] ?? 1);
  };
}

function generatedType({ name, type }: TensorSignature): ElementType {
  if (isElementType(type)) return type;
  const problem = `elements of type ${type}, which cannot be generated; give evaluation data`;
  throw new ServiceError("evaluation_failed", `Input "${name}" has ${problem}`);
}

function inputBytes({ type, shape }: InputToFill): number {
  return countElements(shape) * elementTypes[type].bytes;
}

/** Before any input is allocated: a model can have thousands of them. */
function checkSampleBytes(inputs: readonly InputToFill[]): void {
  const size = inputs.reduce((sum, input) => sum + inputBytes(input), 0);
  if (size <= maxSampleBytes) return;
  const [first] = inputs.toSorted((a, b) => inputBytes(b) - inputBytes(a));
  const largest = `the largest, "${first?.name}" of shape [${first?.shape.join()}]`;
  const problem = `take ${size} bytes with ${largest}; at most ${maxSampleBytes} are generated`;
  throw new ServiceError("evaluation_failed", `The inputs of a sample ${problem}`);
}

interface InputToFill {
  name: string;
  type: ElementType;
  shape: readonly number[];
}

function chooseElementValues(
  { name, type, shape }: InputToFill,
  choice: SizeChoice,
  random: () => number,
) {
  const isFloat = type.startsWith("float");
  const named = namedFillings.find(({ pattern }) => pattern.test(name));
  if (isFloat) return /mask/i.test(name) ? () => 1 : createNormal(random);
  if (named)
    return (index: number) => named.value(index, shape.at(-1) ?? choice.sequence, choice.past);
  if (type === "bool") return () => 1;
  const limit = narrowLimits[type] ?? choice.idLimit;
  return () => Math.floor(random() * limit);
}

/** What is generated for an input, for people. */
export function describeFilling({ name, type, content }: SampleInput, hasStates: boolean): string {
  switch (content?.kind) {
    case "image": {
      const motif = content.bright ? "pages of text" : "text on pages and photographs";
      return `${motif}, ${content.normalization.name}`;
    }
    case "sound":
      return `speech-like sound at ${soundRate} Hz`;
    case "tokens":
      return `sentences from ${content.vocabulary} tokens`;
    case "state":
      return hasStates ? "states after earlier steps" : "the state before the first step";
    case undefined:
      break;
  }
  if (type.startsWith("float")) return /mask/i.test(name) ? "ones" : "standard normal values";
  if (namedFillings.some(({ pattern }) => pattern.test(name))) return "what its name says";
  return type === "bool" ? "true" : "random integers";
}

function fillTensor(bytes: Uint8Array, type: ElementType, value: (index: number) => number): void {
  const elements = tensorElements({ type, bytes });
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array) {
    for (let index = 0; index < elements.length; index++) elements[index] = BigInt(value(index));
  } else {
    for (let index = 0; index < elements.length; index++) elements[index] = value(index);
  }
}

/** Types and shapes of a sample: `x: float32[1,3], y: int64[1]`. */
export function describeShapes(sample: Sample): string {
  return sample.map(({ name, type, shape }) => `${name}: ${type}[${shape.join()}]`).join(", ");
}

/** Types and shapes of a sample, and what the model takes. */
export function describeSample({ signature }: RunnableModel, sample: Sample): string {
  if (signature.inputs.length === 0) return "which has no inputs";
  const wanted = signature.inputs.map((input) => {
    if (!input.isTensor) return input.name;
    const { name, type, shape } = input;
    return `${name}: ${type}[${shape.map((size) => (size === "" ? "?" : size)).join()}]`;
  });
  return `${describeShapes(sample)} where the model takes ${wanted.join(", ")}`;
}

export interface TrialOptions {
  /** Outputs that are fetched. */
  readonly outputs: readonly string[];
  readonly signal: AbortSignal;
}

/** The model's inputs. @throws ServiceError evaluation_failed for one that takes no tensor. */
export function requireTensorInputs({ signature }: RunnableModel): TensorSignature[] {
  return signature.inputs.map((input) => {
    if (input.isTensor) return input;
    const message = `Input "${input.name}" takes no tensor, which cannot be evaluated`;
    throw new ServiceError("evaluation_failed", message);
  });
}

/** Generates a sample on which the model runs, and runs it. */
export async function runOnGeneratedSample(
  model: RunnableModel,
  options: TrialOptions,
): Promise<{ sample: Sample; outputs: TensorData[] }> {
  const inputs = requireTensorInputs(model);
  const sample = generateSample(inputs, await chooseSizes(model, inputs, options), 0);
  return { sample, outputs: await model.run(sample, options.outputs) };
}

/**
 * The first choice of sizes on which the model runs and has at least one output element.
 * @throws ServiceError evaluation_failed if there is none
 */
export async function chooseSizes(
  model: RunnableModel,
  inputs: readonly SampleInput[],
  options: TrialOptions,
): Promise<SizeChoice> {
  const tried = new Set<string>();
  let refusal: Error | undefined;
  for (const choice of orderSizes(inputs)) {
    const sample = generateSample(inputs, choice, 0);
    const key = `${describeShapes(sample)} ${choice.idLimit}`;
    if (tried.has(key)) continue;
    tried.add(key);
    const error = await trySample(model, sample, options);
    if (error === undefined) return choice;
    refusal ??= error;
  }
  const advice = `give evaluation data. ${refusal?.message ?? ""}`;
  throw new ServiceError(
    "evaluation_failed",
    `The original runs on none of ${tried.size} generated inputs; ${advice}`,
    { cause: refusal },
  );
}

/** Those of lines come first for a model that takes lines. */
function orderSizes(inputs: readonly SampleInput[]): readonly SizeChoice[] {
  const takesLines = inputs.some(({ content }) => content?.kind === "image" && content.isLine);
  if (!takesLines) return sizeChoices;
  const isHigh = ({ height }: SizeChoice) => Number(height > maxLineHeight);
  return sizeChoices.toSorted((a, b) => isHigh(a) - isHigh(b));
}

/** Why a sample cannot be used; undefined where it can. A crash is not about sizes. */
export async function trySample(
  model: RunnableModel,
  sample: Sample,
  { outputs, signal }: TrialOptions,
): Promise<Error | undefined> {
  const shapes = describeShapes(sample);
  try {
    const tensors = await model.run(sample, outputs);
    const isEmpty = tensors.every(({ shape }) => countElements(shape) === 0);
    return isEmpty ? new Error(`Its outputs are empty on ${shapes}`) : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RuntimeCrashError) {
      const message = `The original could not be run on ${shapes}: ${error.message}`;
      throw new ServiceError("evaluation_failed", message, { cause: error });
    }
    return new Error(`On ${shapes}: ${errorMessage(error)}`, { cause: error });
  }
}

/**
 * Seeded source of numbers evenly spread over [0, 1), the same on every machine: mulberry32 by
 * Tommy Ettinger (public domain).
 */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Numbers of the standard normal distribution (Box-Muller transform). */
export function createNormal(random: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
