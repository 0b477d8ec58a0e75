import assert from "node:assert/strict";
import { test } from "node:test";
import { generateSample } from "../../../src/engine/samples/generate-sample.ts";
import { sizeChoices } from "../../../src/engine/samples/input-sizes.ts";
import type { TensorSignature } from "../../../src/engine/runtime/session-protocol.ts";

const [choice] = sizeChoices;
assert(choice);

function floats(name: string, shape: TensorSignature["shape"]): TensorSignature {
  return { name, isTensor: true, type: "float32", shape };
}

/** Inputs that are too large, each way, and what the refusal says. */
const tooLarge: [name: string, inputs: TensorSignature[], message: RegExp][] = [
  [
    "alone",
    [floats("x", [1, 2 ** 29])],
    /take 2147483648 bytes with the largest, "x" of shape \[1,536870912\]; at most 1073741824/,
  ],
  [
    "only together",
    Array.from({ length: 1000 }, (_, i) => floats(`x${i}`, [1, 2 ** 25])),
    /take 134217728000 bytes with the largest, "x0" of shape \[1,33554432\]/,
  ],
];
for (const [name, inputs, message] of tooLarge) {
  test(`a sample whose inputs are too large ${name} is refused before any is allocated`, () => {
    const before = process.memoryUsage().arrayBuffers;
    assert.throws(() => generateSample(inputs, choice, 0), { code: "evaluation_failed", message });
    assert(process.memoryUsage().arrayBuffers - before < 2 ** 20);
  });
}
