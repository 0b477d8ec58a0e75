import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readLines } from "../../src/kubernetes/pod-log.ts";

test("readLines() gives the same lines however the bytes are cut", async () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "é", "漢", "😀", "\n", "\r"),
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(200), { maxLength: 6 }), async (whole, cuts) => {
      const lines = await Array.fromAsync(readLines(streamChunks(whole, cuts), 1000));
      assert.deepEqual(lines, whole.match(/[^\n]*\n|[^\n]+$/g) ?? []);
    }),
  );
});

test("readLines() cuts long lines between characters", async () => {
  const text = fc.string({ unit: fc.constantFrom("a", "é", "漢", "😀", "\n"), maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.array(fc.nat(200), { maxLength: 6 }),
      fc.integer({ min: 4, max: 9 }),
      async (whole, cuts, max) => {
        const pieces = await Array.fromAsync(readLines(streamChunks(whole, cuts), max));
        assert.equal(pieces.join(""), whole);
        for (const piece of pieces) assert.ok(Buffer.byteLength(piece) <= max);
      },
    ),
  );
});

async function* streamChunks(text: string, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  for (const [index, end] of places.slice(1).entries()) yield bytes.subarray(places[index], end);
}
