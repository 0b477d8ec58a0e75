import type { MetadataReader } from "./gguf-metadata.ts";
import { type TokenizerParts, tokenTypes } from "./tokenizer-parts.ts";

/** What stands for a space in words. */
const space = "\u2581";

/** Of a word, since each of its parts is looked up: words of Mistral have 18 at most. */
const maxCharacters = 512;

/**
 * Of all pairs together, since words that are made of each other have any number of them. Llama 2
 * has some 60,000 pairs of a few characters each.
 */
const maxPairCharacters = 32 * 1024 ** 2;

/**
 * A tokenizer of SentencePiece's byte pairs, with a token for each byte of characters that no word
 * has. A text begins with a space unless `add_space_prefix` says otherwise, and so does each part
 * of it after a special token.
 */
export function readSentencePieceParts(reader: MetadataReader): TokenizerParts {
  const words = reader.texts("tokenizer.ggml.tokens", maxCharacters);
  const types = reader.list("tokenizer.ggml.token_type");
  const unknown = words.find((_, id) => types[id] === tokenTypes.unknown) ?? null;
  const hasPrefix = reader.findFlag("tokenizer.ggml.add_space_prefix") ?? true;
  const spaces = { type: "Replace", pattern: { String: " " }, content: space };
  const prefix = { type: "Prepend", prepend: space };
  const strip = { type: "Strip", content: " ", start: 1, stop: 0 };
  return {
    normalizer: { type: "Sequence", normalizers: hasPrefix ? [prefix, spaces] : [spaces] },
    preTokenizer: null,
    postProcessors: [],
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: space }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...(hasPrefix ? [strip] : []),
      ],
    },
    model: {
      unk_token: unknown,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      merges: listMerges(reader, words, types),
    },
    addsBos: true,
    endWords: [],
    tokenizerClass: "LlamaTokenizer",
  };
}

/**
 * All pairs of words that are a word together. SentencePiece merges by the scores of words, and a
 * tokenizer.json by the order of its pairs. Words of the same score are merged from the left on,
 * so that of their pairs those go first whose left word is longer: it is what was merged before.
 */
function listMerges(
  reader: MetadataReader,
  words: readonly string[],
  types: readonly unknown[],
): string[] {
  const scores = reader.numbers("tokenizer.ggml.scores");
  const known = new Set(words.filter((_, id) => types[id] === tokenTypes.normal));
  const merges: { pair: string; score: number; length: number }[] = [];
  let pairCharacters = 0;
  for (const [id, word] of words.entries()) {
    if (types[id] !== tokenTypes.normal) continue;
    const characters = Array.from(word);
    for (let length = 1; length < characters.length; length++) {
      const left = characters.slice(0, length).join("");
      const right = characters.slice(length).join("");
      if (!known.has(left) || !known.has(right)) continue;
      merges.push({ pair: `${left} ${right}`, score: Number(scores[id]), length });
      pairCharacters += word.length + 1;
    }
    if (pairCharacters > maxPairCharacters) {
      const problem = `has words whose pairs have more than ${maxPairCharacters} characters`;
      throw reader.invalid("tokenizer.ggml.tokens", problem);
    }
  }
  return merges
    .toSorted((a, b) => b.score - a.score || b.length - a.length)
    .map(({ pair }) => pair);
}
