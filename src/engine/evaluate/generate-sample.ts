import { ServiceError } from "../../contract/errors.ts";
import { inputShape, type SizeChoice } from "./input-sizes.ts";
import { createNormal, createRandom } from "./random.ts";
import type { TensorSignature } from "./session-protocol.ts";
import { tensorElements, elementType, elementTypes, type ElementType, type Sample } from "./tensor-data.ts";
import { countElements } from "../onnx/count-elements.ts";

/** Largest generated input, bytes: a sample is held in memory as a whole. */
const maxInputBytes = 1_073_741_824;

interface Filling {
  pattern: RegExp;
  value: (index: number, lastSize: number) => number;
}

/** What inputs hold whose names tell; integers and flags only, so that float features are never constant. */
const namedFillings: readonly Filling[] = [
  { pattern: /mask/i, value: () => 1 },
  { pattern: /token_type|segment/i, value: () => 0 },
  { pattern: /position/i, value: (index, lastSize) => index % lastSize },
  { pattern: /^sr$|sample_?rate|sampling_?rate/i, value: () => 16_000 },
  { pattern: /length|_len$|^len/i, value: (_, lastSize) => lastSize },
  { pattern: /use_cache|past/i, value: () => 0 },
];

/** Largest values that narrow integer types hold as features, such as pixels. */
const narrowLimits: Partial<Record<ElementType, number>> = { uint8: 256, int8: 128 };

/**
 * Makes a sample that fits the signature: floats of the standard normal distribution (ones for masks), small non-negative integers,
 * and true flags. The same seed gives the same sample.
 *
 * @throws ServiceError evaluation_failed for an input that cannot be generated.
 */
export function generateSample(
  inputs: readonly TensorSignature[],
  choice: SizeChoice,
  seed: number,
): Sample {
  const random = createRandom(seed);
  return inputs.map((input) => {
    const shape = inputShape(input, choice);
    const type = elementType.safeParse(input.type).data;
    if (type === undefined) {
      throw new ServiceError(
        "evaluation_failed",
        `Input "${input.name}" has elements of type ${input.type}, which cannot be generated; give evaluation data`,
      );
    }
    const size = countElements(shape) * elementTypes[type].bytes;
    if (size > maxInputBytes) {
      throw new ServiceError(
        "evaluation_failed",
        `Input "${input.name}" of shape [${shape.join()}] takes ${size} bytes; at most ${maxInputBytes} are generated`,
      );
    }
    const bytes = new Uint8Array(size);
    fillTensor(bytes, type, chooseElementValues({ name: input.name, type, shape }, choice, random));
    return { name: input.name, type, shape, bytes };
  });
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
