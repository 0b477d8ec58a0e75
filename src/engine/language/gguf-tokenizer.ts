import type { SpecialTokens } from "./decoder-facts.ts";
import type { MetadataReader } from "./gguf-metadata.ts";

/**
 * Patterns by which a text is cut before byte pairs are merged, by `tokenizer.ggml.pre`: each is
 * that of the tokenizer.json which the name stands for.
 */
const splits: Readonly<Record<string, readonly object[]>> = {
  "gpt-2": [byteLevel(true)],
  smollm: [{ type: "Digits", individual_digits: true }, byteLevel(true)],
  "llama-bpe": [
    splitBy(
      String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
    ),
    byteLevel(false),
  ],
  qwen2: [
    splitBy(
      String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
    ),
    byteLevel(false),
  ],
};

function byteLevel(useRegex: boolean): object {
  return { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: useRegex };
}

function splitBy(regex: string): object {
  return { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false };
}

/** Values of `tokenizer.ggml.token_type`. */
const tokenTypes = { control: 3, userDefined: 4 } as const;

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
  const pre = reader.requireOneOf("tokenizer.ggml.pre", Object.keys(splits));
  const words = reader.texts("tokenizer.ggml.tokens");
  const types = reader.list("tokenizer.ggml.token_type");
  const added = words.flatMap((content, id) =>
    types[id] === tokenTypes.control || types[id] === tokenTypes.userDefined
      ? [addedToken(id, content, types[id] === tokenTypes.control)]
      : [],
  );
  const find = (name: string) => reader.find(`tokenizer.ggml.${name}_token_id`);
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: { type: "Sequence", pretokenizers: splits[pre] },
    post_processor: byteLevel(true),
    decoder: byteLevel(true),
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
      merges: reader.texts("tokenizer.ggml.merges"),
    },
  };
  const tokens = {
    bos: find("bos"),
    eos: [find("eos")].filter((id) => id !== undefined),
    pad: find("padding"),
  };
  return { tokens, files: describeFiles(tokenizer, tokens, words, reader) };
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
