import type { ModelSignature, TensorSignature } from "./session-protocol.ts";
import { elementTypes, type Sample, type TensorData } from "./tensor-data.ts";
import type { TokenWindow } from "./token-windows.ts";

/** Output of the scores of each token of the vocabulary. */
export const logitsName = "logits";

/** What a language model takes and gives. */
export interface LanguageInputs {
  readonly inputs: readonly TensorSignature[];
  readonly vocabularySize: number | undefined;
}

const integerTypes: readonly string[] = ["int32", "int64"];
const integerInputs: readonly string[] = ["input_ids", "attention_mask", "position_ids"];

/**
 * What a decoder with caches of past tokens takes; undefined for any other model, such as one that
 * predicts masked tokens, and where a cache has sizes that are not known.
 */
export function findLanguageInputs({
  inputs,
  outputs,
}: ModelSignature): LanguageInputs | undefined {
  const logits = outputs.find(({ name }) => name === logitsName);
  if (logits?.isTensor !== true || logits.shape.length !== 3) return undefined;
  const tensors = inputs.flatMap((input) => (input.isTensor ? [input] : []));
  const isKnown = tensors.every((input) => isTokens(input) || isCache(input));
  const hasTokens = tensors.some(({ name }) => name === "input_ids");
  if (!isKnown || !hasTokens || !tensors.some(isCache)) return undefined;
  const size = logits.shape[2];
  return { inputs: tensors, vocabularySize: typeof size === "number" ? size : undefined };
}

function isTokens({ name, type, shape }: TensorSignature): boolean {
  return integerInputs.includes(name) && integerTypes.includes(type) && shape.length === 2;
}

/** Keys or values of past tokens, `[batch, heads, past tokens, head size]`. */
function isCache({ type, shape }: Pick<TensorSignature, "type" | "shape">): boolean {
  const [, heads, , size, ...others] = shape;
  const isSized = typeof heads === "number" && typeof size === "number" && others.length === 0;
  return isSized && (type === "float32" || type === "float16");
}

/** A window as a sample: all of its tokens at once, after nothing. */
export function createTokenSample({ inputs }: LanguageInputs, window: TokenWindow): Sample {
  return inputs.map((input): TensorData => {
    const { name, type, shape } = input;
    if (type === "float32" || type === "float16") {
      const sizes = [1, Number(shape[1]), 0, Number(shape[3])];
      return { name, type, shape: sizes, bytes: new Uint8Array() };
    }
    const values = window.map((id, index) => {
      if (name === "input_ids") return id;
      return name === "attention_mask" ? 1 : index;
    });
    const elements =
      type === "int64" ? BigInt64Array.from(values, BigInt) : Int32Array.from(values);
    const bytes = new Uint8Array(elements.buffer);
    const elementType = type === "int64" ? "int64" : "int32";
    return { name, type: elementType, shape: [1, window.length], bytes };
  });
}

/** How many tokens a text has in a sample, after how many; undefined for samples of other models. */
export function describeTokens(sample: Sample): string | undefined {
  const ids = sample.find(({ name }) => name === "input_ids");
  const cache = sample.find(isCache);
  if (ids === undefined || cache === undefined || ids.shape[0] !== 1) return undefined;
  const [tokens, past] = [ids.shape[1], cache.shape[2]];
  const count = `${tokens} ${tokens === 1 ? "token" : "tokens"}`;
  return past === 0 ? count : `${count} after ${past}`;
}

/**
 * The last token of a window after caches of the others, as a decoder generates text. The caches are
 * zeros: their values do not change the time of a run.
 * @param prompt a sample of createTokenSample
 */
export function createTokenStep(prompt: Sample): Sample {
  const tokens = prompt.find(({ name }) => name === "input_ids");
  const past = Number(tokens?.shape[1]) - 1;
  return prompt.map((tensor): TensorData => {
    const { name, type, shape, bytes } = tensor;
    const [batch = 1, heads = 1, , size = 1] = shape;
    const elementBytes = elementTypes[type].bytes;
    if (shape.length === 4) {
      const zeros = new Uint8Array(batch * heads * past * size * elementBytes);
      return { name, type, shape: [batch, heads, past, size], bytes: zeros };
    }
    if (name === "attention_mask") return tensor;
    return { name, type, shape: [batch, 1], bytes: bytes.slice(-elementBytes) };
  });
}
