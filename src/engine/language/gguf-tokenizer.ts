import type { SpecialTokens } from "./decoder-facts.ts";
import { readByteLevelParts } from "./gguf-byte-level.ts";
import type { MetadataReader } from "./gguf-metadata.ts";
import { readSentencePieceParts } from "./gguf-sentencepiece.ts";
import { tokenTypes } from "./tokenizer-parts.ts";

interface TokenizerFiles {
  readonly tokens: SpecialTokens;
  /** Contents by names. */
  readonly files: ReadonlyMap<string, string>;
}

/**
 * The tokenizer of a GGUF file as files that Hugging Face's libraries and ONNX Runtime GenAI read:
 * one of byte-level byte pairs (`tokenizer.ggml.model` "gpt2"), or one of SentencePiece ("llama").
 * @throws ServiceError model_invalid, model_unsupported for another tokenizer, by its name
 */
export function readGgufTokenizer(reader: MetadataReader): TokenizerFiles {
  const model = reader.requireOneOf("tokenizer.ggml.model", ["gpt2", "llama"]);
  const parts = model === "gpt2" ? readByteLevelParts(reader) : readSentencePieceParts(reader);
  const words = reader.texts("tokenizer.ggml.tokens");
  const types = reader.list("tokenizer.ggml.token_type");
  const isSpecial = (id: number) => types[id] === tokenTypes.control;
  const added = words.flatMap((content, id) =>
    isSpecial(id) || types[id] === tokenTypes.userDefined || types[id] === tokenTypes.unknown
      ? [addedToken(id, content, types[id] !== tokenTypes.userDefined)]
      : [],
  );
  const find = (name: string) => reader.find(`tokenizer.ggml.${name}_token_id`);
  const bos = find("bos");
  const isMarked = reader.findFlag("tokenizer.ggml.add_bos_token") ?? parts.addsBos;
  const mark = isMarked && bos !== undefined ? words[bos] : undefined;
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: parts.normalizer,
    pre_tokenizer: parts.preTokenizer,
    post_processor: {
      type: "Sequence",
      processors: [
        ...parts.postProcessors,
        ...(bos === undefined || mark === undefined ? [] : [markBeginning(bos, mark)]),
      ],
    },
    decoder: parts.decoder,
    model: {
      type: "BPE",
      dropout: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
      ...parts.model,
    },
  };
  const named = ["eos", "eot", "eom"].map(find).filter((id) => id !== undefined);
  const ends = parts.endWords.map((word) => words.indexOf(word));
  const tokens = {
    bos,
    // A message ends with a token of its own where a whole text ends with another one.
    eos: [...new Set([...named, ...ends.filter(isSpecial)])],
    pad: find("padding"),
  };
  const template = reader.findText("tokenizer.chat_template");
  const config = describeConfig(tokens, words, parts.tokenizerClass, template);
  const files = new Map([
    ["tokenizer.json", JSON.stringify(tokenizer)],
    ["tokenizer_config.json", `${JSON.stringify(config, null, 2)}\n`],
  ]);
  if (template !== undefined) files.set("chat_template.jinja", template);
  return { tokens, files };
}

/** Puts a token before a text, and before each of two that are joined. */
function markBeginning(id: number, word: string): object {
  const mark = (type: number) => ({ SpecialToken: { id: word, type_id: type } });
  const text = (name: string, type: number) => ({ Sequence: { id: name, type_id: type } });
  return {
    type: "TemplateProcessing",
    single: [mark(0), text("A", 0)],
    pair: [mark(0), text("A", 0), mark(1), text("B", 1)],
    special_tokens: { [word]: { id: word, ids: [id], tokens: [word] } },
  };
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

function describeConfig(
  { bos, eos: [eos], pad }: SpecialTokens,
  words: readonly string[],
  tokenizerClass: string,
  template: string | undefined,
): object {
  const word = (id: number | undefined) => (id === undefined ? undefined : words[id]);
  return {
    add_prefix_space: false,
    bos_token: word(bos),
    eos_token: word(eos),
    pad_token: word(pad),
    chat_template: template,
    clean_up_tokenization_spaces: false,
    tokenizer_class: tokenizerClass,
  };
}
