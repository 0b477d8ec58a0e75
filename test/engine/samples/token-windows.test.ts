import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import {
  addNextTokens,
  emptyNextTokens,
  summarizeNextTokens,
} from "../../../src/engine/evaluate/next-tokens.ts";
import {
  readBuiltinWindows,
  readCallerWindows,
} from "../../../src/engine/samples/token-windows.ts";

/** A token for each word, by its length, after a mark. */
const words = {
  encode: (text: string) =>
    text
      .split(/\s+/)
      .filter(Boolean)
      .map((word) => word.length),
  prefix: [99],
  vocabularySize: 100,
  contextLength: 64,
};
const limits = { count: 3, tokens: 4, vocabularySize: 100 };

async function read(t: TestContext, content: string | Uint8Array, tokenizer = words) {
  const folder = await mkdtemp(path.join(tmpdir(), "windows-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "data");
  await writeFile(file, content);
  return readCallerWindows(file, tokenizer, limits);
}

test("a text becomes windows of one size, each after the mark of a beginning", async (t) => {
  assert.deepEqual(await read(t, "a bb ccc dddd eeeee ffffff g"), [
    [99, 1, 2, 3],
    [99, 4, 5, 6],
  ]);
});

test("a text that is shorter than a window is one", async (t) => {
  assert.deepEqual(await read(t, "a bb"), [[99, 1, 2]]);
});

test("lines of JSON have texts and tokens, of which the first windows are taken", async (t) => {
  const lines = ['{"text": "a bb"}', "", "[7, 8, 9]", '{"input_ids": [5, 6]}', "[1, 2]"];
  assert.deepEqual(await read(t, lines.join("\n")), [
    [99, 1, 2],
    [7, 8, 9],
    [5, 6],
  ]);
});

const wrong: readonly [name: string, content: string | Uint8Array, message: RegExp][] = [
  ["a line that is something else", '[1, 2]\n{"txt": "a"}', /Line 2 .* "text" or "input_ids"/],
  ["a token that the model does not know", "[1, 2]\n[3, 100]", /Window 2 has token 100, .* 100/],
  ["a text without words", " \n", /no text of two tokens/],
  ["bytes that are no text", Uint8Array.of(0xff, 0xfe, 0x00), /neither an \.npz file nor text/],
];
for (const [name, content, message] of wrong) {
  test(`${name} is refused`, async (t) => {
    await assert.rejects(read(t, content), { code: "evaluation_data_invalid", message });
  });
}

test("the built-in text has some thousand tokens", async () => {
  const windows = await readBuiltinWindows("evaluation", words, { ...limits, count: 1000 });
  assert.ok(windows.length > 350, String(windows.length));
});

function logits(...rows: readonly number[][]) {
  const bytes = new Uint8Array(Float32Array.from(rows.flat()).buffer);
  const shape = [1, rows.length, rows[0]?.length ?? 0];
  return { name: "logits", type: "float32", shape, bytes } as const;
}

function compareLogits(original: ReturnType<typeof logits>, result: ReturnType<typeof logits>) {
  const sums = emptyNextTokens();
  addNextTokens(sums, [0, 1, 0], original, result);
  return summarizeNextTokens(sums);
}

test("perplexity and divergence are those of the textbook", () => {
  const even = logits([0, 0], [0, 0], [0, 0]);
  const odds = Math.log(3);
  const sure = logits([0, odds], [odds, 0], [odds, 0]);
  const figures = compareLogits(even, sure);
  assert(figures);
  assert.equal(figures.tokens, 2);
  assert.ok(Math.abs(figures.originalPerplexity - 2) < 1e-6);
  assert.ok(Math.abs(figures.resultPerplexity - 4 / 3) < 1e-6);
  assert.ok(Math.abs(figures.perplexityRatio - 2 / 3) < 1e-6);
  const expected = 0.5 * Math.log(0.5 / 0.75) + 0.5 * Math.log(0.5 / 0.25);
  assert.ok(Math.abs(figures.klDivergence - expected) < 1e-6);
  assert.equal(compareLogits(even, even)?.klDivergence, 0);
});

test("the perplexity of a ruined result is bounded", () => {
  const even = logits([0, 0], [0, 0], [0, 0]);
  const ruined = compareLogits(even, logits([1e4, 0], [0, 1e4], [0, 0]));
  assert(ruined);
  assert.deepEqual([ruined.resultPerplexity, ruined.perplexityRatio], [1e10, 1e10]);
});

test("logits that are not finite have no perplexity", () => {
  const even = logits([0, 0], [0, 0], [0, 0]);
  assert.equal(compareLogits(even, logits([NaN, 0], [0, 0], [0, 0])), undefined);
});
