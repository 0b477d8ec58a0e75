import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Tokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import type { GgufValue } from "../../../src/engine/checkpoints/read-gguf.ts";
import { MetadataReader } from "../../../src/engine/language/gguf-metadata.ts";
import { readGgufTokenizer } from "../../../src/engine/language/gguf-tokenizer.ts";

/** No merges lead to the last word. */
const words = ["<begin>", "<end>", "<eot>", "a", "b", "c", "ab", "abc"];

function read(pre: string, entries: Readonly<Record<string, GgufValue>> = {}) {
  const metadata = new Map<string, GgufValue>(
    Object.entries({
      model: "gpt2",
      pre,
      tokens: words,
      token_type: [3, 3, 3, 1, 1, 1, 1, 1],
      merges: ["a b"],
      bos_token_id: 0,
      eos_token_id: 1,
      eot_token_id: 2,
      ...entries,
    }).map(([name, value]) => [`tokenizer.ggml.${name}`, value]),
  );
  const { tokens, files } = readGgufTokenizer(new MetadataReader("model.gguf", metadata));
  const content = JSON.parse(files.get("tokenizer.json") ?? "");
  const tokenizer = new Tokenizer(content, JSON.parse(files.get("tokenizer_config.json") ?? ""));
  return { tokens, encode: (text: string) => tokenizer.encode(text).ids };
}

test("texts of Llama 3 begin with a token for that, and whole words are not merged", () => {
  const { tokens, encode } = read("llama-bpe");
  assert.deepEqual(encode("abc"), [0, 7]);
  assert.deepEqual(tokens.eos, [1, 2]);
});

test("other texts are merged, and begin with a token only where the file says so", () => {
  assert.deepEqual(read("gpt-2").encode("abc"), [6, 5]);
  assert.deepEqual(read("gpt-2", { add_bos_token: true }).encode("abc"), [0, 6, 5]);
  assert.deepEqual(read("llama-bpe", { add_bos_token: false }).encode("abc"), [7]);
  assert.deepEqual(read("smaug-bpe").encode("abc"), [6, 5]);
});

test("a text ends with tokens that are known to, beside those that the file names", () => {
  const tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "a"];
  const entries = { tokens, token_type: [3, 3, 3, 1, 1], merges: [], eos_token_id: 2 };
  assert.deepEqual(read("qwen2", { ...entries, eot_token_id: 2 }).tokens.eos, [2, 0]);
});

const spaced = z.string().transform((words) => words.split(" "));
const tokens = z.array(z.array(z.int()));
const recorded = z
  .object({
    words: spaced,
    merges: z.string().transform((merges) => merges.split("\n")),
    texts: z.array(z.string()),
    tokens: z.record(z.string(), tokens),
    sentencepiece: z.object({
      words: spaced,
      types: z.array(z.int()),
      scores: z.array(z.number()),
      texts: z.array(z.string()),
      tokens,
    }),
  })
  .parse(JSON.parse(await readFile(new URL("tokenizers.json", import.meta.url), "utf8")));

/** Each with the value whose tokenizer.json was recorded. */
const sameTexts: readonly (readonly [pre: string, like: string])[] = [
  ["llama-bpe", "llama-bpe"],
  ["llama3", "llama-bpe"],
  ["llama-v3", "llama-bpe"],
  ["smaug-bpe", "llama-bpe"],
  ["qwen2", "qwen2"],
  ["deepseek-r1-qwen", "qwen2"],
  ["tekken", "tekken"],
];

for (const [pre, like] of sameTexts) {
  test(`texts become the tokens of Python's tokenizers with ${pre}`, () => {
    const { words: tokens, merges, texts } = recorded;
    const { encode } = read(pre, { tokens, merges, token_type: [], add_bos_token: false });
    assert.deepEqual(texts.map(encode), recorded.tokens[like]);
  });
}

test("texts become the tokens of SentencePiece, runs of spaces too", () => {
  const { words: tokens, types, scores, texts, tokens: expected } = recorded.sentencepiece;
  const entries = { model: "llama", tokens, scores, token_type: types, bos_token_id: 1 };
  const { encode } = read("default", { ...entries, add_bos_token: false });
  assert.deepEqual(texts.map(encode), expected);
  assert.deepEqual(read("default", entries).encode("x"), [1, ...encode("x")]);
  const { encode: encodeAsItIs } = read("default", { ...entries, add_space_prefix: false });
  assert.deepEqual(encodeAsItIs(" x"), [1, ...encode("x")]);
});

test("a word of SentencePiece that is longer than all words of models is refused", () => {
  const entries = { model: "llama", tokens: ["a", "a".repeat(513)], scores: [-1, -2] };
  const message = /^model\.gguf: metadata "tokenizer\.ggml\.tokens" is no list of texts of 512/;
  assert.throws(() => read("default", entries), { code: "model_invalid", message });
});

test("words of SentencePiece whose pairs would not fit in memory are refused", () => {
  const tokens = Array.from({ length: 512 }, (_, i) => "a".repeat(i + 1));
  const [token_type, scores] = [tokens.map(() => 1), tokens.map(() => 0)];
  const message = /"tokenizer\.ggml\.tokens" has words whose pairs have more than 33554432 char/;
  assert.throws(() => read("", { model: "llama", tokens, token_type, scores }), {
    code: "model_invalid",
    message,
  });
});
