import type { SpecialTokens } from "./decoder-facts.ts";
import type { MetadataReader } from "./gguf-metadata.ts";

interface TokenizerKind {
  /** What a text becomes before it is cut. */
  readonly normalizer?: object;
  /** How a text is cut before byte pairs are merged. */
  readonly splits: readonly object[];
  /** Whether a piece of text that is a word of the vocabulary is taken as it is. */
  readonly ignoresMerges: boolean;
  /** Whether texts begin with the token for that, where `add_bos_token` does not say so. */
  readonly addsBos: boolean;
}

const llama3: TokenizerKind = {
  splits: cutBy(
    String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  ),
  ignoresMerges: true,
  addsBos: true,
};

const qwen2: TokenizerKind = {
  normalizer: { type: "NFC" },
  splits: cutBy(
    String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  ),
  ignoresMerges: false,
  addsBos: false,
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

function byteLevel(useRegex: boolean): object {
  return { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: useRegex };
}

function cutBy(regex: string): object[] {
  const split = { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false };
  return [split, byteLevel(false)];
}

/** Values of `tokenizer.ggml.token_type`. */
const tokenTypes = { control: 3, userDefined: 4 } as const;

/** Of control tokens that end a text also where a file does not say so, as llama.cpp has it. */
const endWords = ["<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"];

interface TokenizerFiles {
  readonly tokens: SpecialTokens;
  /** Contents by names. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * The tokenizer of a GGUF file as files that Hugging Face's libraries and ONNX Runtime GenAI read.
 * Only tokenizers of byte-level byte pairs are (`tokenizer.ggml.model` "gpt2").
 * @throws ServiceError model_invalid, model_unsupported for another tokenizer, by its name
 */
export function readGgufTokenizer(reader: MetadataReader): TokenizerFiles {
  reader.requireOneOf("tokenizer.ggml.model", ["gpt2"]);
  const kind = kinds[reader.requireOneOf("tokenizer.ggml.pre", Object.keys(kinds))];
  if (kind === undefined) throw new TypeError("A tokenizer that is known has no facts");
  const words = reader.texts("tokenizer.ggml.tokens");
  const types = reader.list("tokenizer.ggml.token_type");
  const added = words.flatMap((content, id) =>
    types[id] === tokenTypes.control || types[id] === tokenTypes.userDefined
      ? [addedToken(id, content, types[id] === tokenTypes.control)]
      : [],
  );
  const find = (name: string) => reader.find(`tokenizer.ggml.${name}_token_id`);
  const bos = find("bos");
  const isMarked = reader.findFlag("tokenizer.ggml.add_bos_token") ?? kind.addsBos;
  const mark = isMarked && bos !== undefined ? words[bos] : undefined;
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: kind.normalizer ?? null,
    pre_tokenizer: { type: "Sequence", pretokenizers: kind.splits },
    post_processor:
      bos === undefined || mark === undefined ? byteLevel(true) : markBeginning(bos, mark),
    decoder: byteLevel(true),
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: kind.ignoresMerges,
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
      merges: reader.texts("tokenizer.ggml.merges"),
    },
  };
  const named = ["eos", "eot", "eom"].map(find).filter((id) => id !== undefined);
  const ends = endWords.map((word) => words.indexOf(word));
  const tokens = {
    bos,
    // A message ends with a token of its own where a whole text ends with another one.
    eos: [...new Set([...named, ...ends.filter((id) => types[id] === tokenTypes.control)])],
    pad: find("padding"),
  };
  return { tokens, files: describeFiles(tokenizer, tokens, words, reader) };
}

/** Puts a token before a text, and before each of two that are joined. */
function markBeginning(id: number, word: string): object {
  const mark = (type: number) => ({ SpecialToken: { id: word, type_id: type } });
  const text = (name: string, type: number) => ({ Sequence: { id: name, type_id: type } });
  const template = {
    type: "TemplateProcessing",
    single: [mark(0), text("A", 0)],
    pair: [mark(0), text("A", 0), mark(1), text("B", 1)],
    special_tokens: { [word]: { id: word, ids: [id], tokens: [word] } },
  };
  return { type: "Sequence", processors: [byteLevel(true), template] };
}

function addedToken(id: number, content: string, special: boolean): object {
  return {
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special,
  };
}

function describeFiles(
  tokenizer: object,
  { bos, eos: [eos], pad }: SpecialTokens,
  words: readonly string[],
  reader: MetadataReader,
): Map<string, string> {
  const word = (id: number | undefined) => (id === undefined ? undefined : words[id]);
  const template = reader.findText("tokenizer.chat_template");
  const config = {
    add_prefix_space: false,
    bos_token: word(bos),
    eos_token: word(eos),
    pad_token: word(pad),
    chat_template: template,
    clean_up_tokenization_spaces: false,
    tokenizer_class: "GPT2Tokenizer",
  };
  const files = new Map([
    ["tokenizer.json", JSON.stringify(tokenizer)],
    ["tokenizer_config.json", `${JSON.stringify(config, null, 2)}\n`],
  ]);
  if (template !== undefined) files.set("chat_template.jinja", template);
  return files;
}
