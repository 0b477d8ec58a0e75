import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createTokenSample,
  createTokenStep,
  describeTokens,
  findLanguageInputs,
  findTimedOutput,
} from "../../../src/engine/samples/language-inputs.ts";
import type { ModelSignature } from "../../../src/engine/runtime/session-protocol.ts";

const tensor = (name: string, type: string, shape: (number | string)[]) =>
  ({ name, isTensor: true, type, shape }) as const;
const cache = (name: string) => tensor(name, "float16", ["batch", 8, "tokens", 128]);
/** Of a decoder whose caches take 64 KiB for each token. */
const layers = Array.from({ length: 16 }, (_, layer) => layer);
const decoder: ModelSignature = {
  inputs: [
    tensor("input_ids", "int64", ["batch", "sequence"]),
    tensor("attention_mask", "int64", ["batch", "tokens"]),
    ...layers.flatMap((layer) =>
      ["key", "value"].map((part) => cache(`past_key_values.${layer}.${part}`)),
    ),
  ],
  outputs: [
    tensor("logits", "float32", ["batch", "sequence", 32_000]),
    ...layers.flatMap((layer) => ["key", "value"].map((part) => cache(`present.${layer}.${part}`))),
  ],
};

test("a step on a GPU has few tokens before it, whose caches are copied there", () => {
  const inputs = findLanguageInputs(decoder);
  assert(inputs);
  const prompt = createTokenSample(
    inputs,
    Array.from({ length: 512 }, (_, id) => id),
  );
  assert.equal(describeTokens(createTokenStep(prompt, "cpu")), "1 token after 511");
  assert.equal(describeTokens(createTokenStep(prompt, "cuda")), "1 token after 32");
});

test("of a decoder that is timed, neither logits nor all caches are fetched", () => {
  assert.equal(findTimedOutput(decoder), "present.15.value");
  const other = { ...decoder, inputs: [tensor("x", "float32", [1, 4])] };
  assert.equal(findTimedOutput(other), undefined);
});
