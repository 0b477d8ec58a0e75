import { logitsName } from "../runtime/logit-rows.ts";
import type { ModelSignature, TensorSignature } from "../runtime/session-protocol.ts";
import { elementTypes, type Sample, type TensorData } from "../runtime/tensor-data.ts";
import type { TokenWindow } from "./token-windows.ts";
import { formatCount } from "../../contract/text/format-count.ts";

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

/**
 * What of a decoder's outputs is fetched where it is timed: a part of the last layer's cache.
 * Generators of text leave logits and caches where they were computed, and the runtime computes all
 * outputs, whichever are fetched. Undefined for other models.
 */
export function findTimedOutput(signature: ModelSignature): string | undefined {
  if (findLanguageInputs(signature) === undefined) return undefined;
  return signature.outputs.findLast((output) => output.isTensor && isCache(output))?.name;
}

/** How many tokens a text has in a sample, after how many; undefined for other models' samples. */
export function describeTokens(sample: Sample): string | undefined {
  const ids = sample.find(({ name }) => name === "input_ids");
  const cache = sample.find(isCache);
  if (ids === undefined || cache === undefined || ids.shape[0] !== 1) return undefined;
  const [tokens = 0, past] = [ids.shape[1], cache.shape[2]];
  const count = formatCount(tokens, "token");
  return past === 0 ? count : `${count} after ${past}`;
}

/**
 * Most bytes of the caches of a step: those of long windows are larger in some models. A decoder
 * keeps caches on the GPU, and a step that is timed has to copy its own there.
 */
const maxCacheBytes = { cpu: 256 * 1024 ** 2, cuda: 2 * 1024 ** 2 } as const;

/**
 * A token of a window after caches of those before it, as a decoder generates text: the last one,
 * or the last whose caches are not too large. They are zeros: values do not change a run's time.
 * @param prompt a sample of createTokenSample
 */
export function createTokenStep(prompt: Sample, provider: keyof typeof maxCacheBytes): Sample {
  const tokens = prompt.find(({ name }) => name === "input_ids")?.shape[1] ?? 1;
  const tokenBytes = prompt.filter(isCache).reduce((sum, cache) => sum + cacheBytes(cache, 1), 0);
  const past = Math.min(tokens - 1, Math.floor(maxCacheBytes[provider] / tokenBytes));
  return prompt.map((tensor): TensorData => {
    const { name, type, shape, bytes } = tensor;
    if (isCache(tensor)) {
      const zeros = new Uint8Array(cacheBytes(tensor, past));
      return { name, type, shape: shape.with(2, past), bytes: zeros };
    }
    const first = name === "attention_mask" ? 0 : past;
    const elementBytes = elementTypes[type].bytes;
    const taken = bytes.slice(first * elementBytes, (past + 1) * elementBytes);
    return { name, type, shape: [1, past + 1 - first], bytes: taken };
  });
}

function cacheBytes({ type, shape }: TensorData, tokens: number): number {
  const [batch = 1, heads = 1, , size = 1] = shape;
  return batch * heads * tokens * size * elementTypes[type].bytes;
}
