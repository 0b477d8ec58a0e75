import type { ModelSignature, TensorSignature } from "./session-protocol.ts";
import type { Sample, TensorData } from "./tensor-data.ts";
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
function isCache({ type, shape: [, heads, , size, ...others] }: TensorSignature): boolean {
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
