import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readFrames } from "../../src/kubernetes/read-frames.ts";

test("readFrames() gives the same frames however the bytes are cut, and drops one that is not whole", async () => {
  const frames = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(frames, fc.array(fc.nat(2_000), { maxLength: 6 }), fc.nat(3), async (sent, cuts, missing) => {
      const bytes = Buffer.concat(sent.map(framed));
      const whole = bytes.subarray(0, Math.max(0, bytes.length - missing));
      const read = await Array.fromAsync(readFrames(chunksOf(whole, cuts), 300), (frame) => new Uint8Array(frame));
      assert.deepEqual(read, missing === 0 ? sent : sent.slice(0, -1));
    }),
  );
});

test("readFrames() refuses a frame that is too long before it has come", async () => {
  const start = framed(new Uint8Array(301)).subarray(0, 5);
  await assert.rejects(Array.fromAsync(readFrames(chunksOf(start, []), 300)), /^RangeError: .* 301 bytes/);
});

function framed(frame: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(frame.length);
  return Buffer.concat([length, frame]);
}

async function* chunksOf(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  const places = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length];
  for (let i = 1; i < places.length; i++) yield bytes.subarray(places[i - 1], places[i]);
}
