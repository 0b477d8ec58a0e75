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

/** Largest generated input, bytes: a sample is in memory as a whole. */
const maxInputBytes = 1_073_741_824;

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
 * @throws ServiceError evaluation_failed for an input that cannot be generated
 */
export function generateSample(
  inputs: readonly TensorSignature[],
  choice: SizeChoice,
  seed: number,
): Sample {
  const random = createRandom(seed);
  return inputs.map((input) => {
    const { name } = input;
    const shape = inputShape(input, choice);
    const type = generatedType(input);
    const bytes = allocateInput({ name, type, shape });
    fillTensor(bytes, type, chooseElementValues({ name, type, shape }, choice, random));
    return { name, type, shape, bytes };
  });
}

function generatedType({ name, type }: TensorSignature): ElementType {
  const parsed = elementType.safeParse(type);
  if (parsed.success) return parsed.data;
  const problem = `elements of type ${type}, which cannot be generated; give evaluation data`;
  throw new ServiceError("evaluation_failed", `Input "${name}" has ${problem}`);
}

function allocateInput({ name, type, shape }: InputToFill): Uint8Array {
  const size = countElements(shape) * elementTypes[type].bytes;
  if (size > maxInputBytes) {
    const problem = `takes ${size} bytes; at most ${maxInputBytes} are generated`;
    const message = `Input "${name}" of shape [${shape.join()}] ${problem}`;
    throw new ServiceError("evaluation_failed", message);
  }
  return new Uint8Array(size);
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
