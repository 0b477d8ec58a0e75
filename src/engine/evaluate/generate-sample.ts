import { ServiceError } from "../../contract/errors.ts";
import { inputShape, type SizeChoice } from "./input-sizes.ts";
import { createNormal, createRandom } from "./random.ts";
import type { TensorSignature } from "./session-protocol.ts";
import {
  tensorElements,
  elementType,
  elementTypes,
  type ElementType,
  type Sample,
} from "./tensor-data.ts";
import { countElements } from "../onnx/count-elements.ts";

/** Largest generated sample, all inputs together, bytes: it is in memory as a whole. */
const maxSampleBytes = 1_073_741_824;

interface Filling {
  pattern: RegExp;
  value: (index: number, lastSize: number) => number;
}

/** Values of inputs by their names; integers and flags only, so that float features vary. */
const namedFillings: readonly Filling[] = [
  { pattern: /mask/i, value: () => 1 },
  { pattern: /token_type|segment/i, value: () => 0 },
  { pattern: /position/i, value: (index, lastSize) => index % lastSize },
  { pattern: /^sr$|sample_?rate|sampling_?rate/i, value: () => 16_000 },
  { pattern: /length|_len$|^len/i, value: (_, lastSize) => lastSize },
  { pattern: /use_cache|past/i, value: () => 0 },
];

/** Limits of features of narrow integer types, such as pixels. */
const narrowLimits: Partial<Record<ElementType, number>> = { uint8: 256, int8: 128 };

/**
 * Generates a sample that fits the signature: floats of the standard normal distribution (ones for
 * masks), small non-negative integers, and true flags. The same seed generates the same sample.
 * @throws ServiceError evaluation_failed for an input that cannot be generated, and for a sample
 * that is too large
 */
export function generateSample(
  inputs: readonly TensorSignature[],
  choice: SizeChoice,
  seed: number,
): Sample {
  const random = createRandom(seed);
  const toFill = inputs.map((input) => {
    return { name: input.name, type: generatedType(input), shape: inputShape(input, choice) };
  });
  checkSampleBytes(toFill);
  return toFill.map((input) => {
    const bytes = new Uint8Array(inputBytes(input));
    fillTensor(bytes, input.type, chooseElementValues(input, choice, random));
    return { ...input, bytes };
  });
}

function generatedType({ name, type }: TensorSignature): ElementType {
  const parsed = elementType.safeParse(type);
  if (parsed.success) return parsed.data;
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
  if (named) return (index: number) => named.value(index, shape.at(-1) ?? choice.sequence);
  if (type === "bool") return () => 1;
  const limit = narrowLimits[type] ?? choice.idLimit;
  return () => Math.floor(random() * limit);
}

function fillTensor(bytes: Uint8Array, type: ElementType, value: (index: number) => number): void {
  const elements = tensorElements({ type, bytes });
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array) {
    for (let index = 0; index < elements.length; index++) elements[index] = BigInt(value(index));
  } else {
    for (let index = 0; index < elements.length; index++) elements[index] = value(index);
  }
}
