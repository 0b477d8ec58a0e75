import type { MetadataReader } from "./gguf-metadata.ts";
import type { TokenizerParts } from "./tokenizer-parts.ts";

interface TokenizerKind {
  /** What a text becomes before it is cut. */
  readonly normalizer?: object;
  /** How a text is cut before byte pairs are merged. */
  readonly splits: readonly object[];
  /** Whether a piece of text that is a word of the vocabulary is taken as it is. */
  readonly ignoresMerges: boolean;
  /** Whether texts begin with the token for that, where `add_bos_token` does not say so. */
  readonly addsBos: boolean;
  /** Words of tokens that end a text, as generation_config.json of these models names them. */
  readonly endWords?: readonly string[];
}

const llama3: TokenizerKind = {
  splits: cutBy(
    String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  ),
  ignoresMerges: true,
  addsBos: true,
  endWords: ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"],
};

const qwen2: TokenizerKind = {
  normalizer: { type: "NFC" },
  splits: cutBy(
    String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  ),
  ignoresMerges: false,
  addsBos: false,
  endWords: ["<|endoftext|>", "<|im_end|>"],
};

/** That of Mistral Nemo and later models. */
const tekken: TokenizerKind = {
  splits: cutBy(
    String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  ),
  ignoresMerges: true,
  addsBos: true,
};

/**
 * By `tokenizer.ggml.pre`: each is as the tokenizer.json which the name stands for, and as
 * llama.cpp's `llama_vocab` has it.
 */
const kinds: Readonly<Record<string, TokenizerKind>> = {
  "gpt-2": { splits: [byteLevel(true)], ignoresMerges: false, addsBos: false },
  smollm: {
    splits: [{ type: "Digits", individual_digits: true }, byteLevel(true)],
    ignoresMerges: false,
    addsBos: false,
  },
  "llama-bpe": llama3,
  llama3,
  "llama-v3": llama3,
  "smaug-bpe": { ...llama3, ignoresMerges: false, addsBos: false },
  qwen2,
  "deepseek-r1-qwen": qwen2,
  tekken,
};

/**
 * A tokenizer of byte pairs over the bytes of a text.
 * @throws ServiceError model_unsupported for a `tokenizer.ggml.pre` that is not known
 */
export function readByteLevelParts(reader: MetadataReader): TokenizerParts {
  const kind = kinds[reader.requireOneOf("tokenizer.ggml.pre", Object.keys(kinds))];
  if (kind === undefined) throw new TypeError("A tokenizer that is known has no facts");
  return {
    normalizer: kind.normalizer ?? null,
    preTokenizer: { type: "Sequence", pretokenizers: kind.splits },
    postProcessors: [byteLevel(true)],
    decoder: byteLevel(true),
    model: {
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: kind.ignoresMerges,
      merges: reader.texts("tokenizer.ggml.merges"),
    },
    addsBos: kind.addsBos,
    endWords: kind.endWords ?? [],
    tokenizerClass: "GPT2Tokenizer",
  };
}

function byteLevel(useRegex: boolean): object {
  return { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: useRegex };
}

function cutBy(regex: string): object[] {
  const split = { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false };
  return [split, byteLevel(false)];
}
