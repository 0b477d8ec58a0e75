import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createFrameSplitter } from "../../../src/kubernetes/protobuf/frame-splitter.ts";

test("frames are the same however the bytes are cut, and one that is not whole is not given", () => {
  const frames = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
  fc.assert(
    fc.property(
      frames,
      fc.array(fc.nat(2_000), { maxLength: 6 }),
      fc.nat(3),
      (sent, cuts, missing) => {
        const bytes = Buffer.concat(sent.map(framed));
        const whole = bytes.subarray(0, Math.max(0, bytes.length - missing));
        const read = splitChunks(whole, cuts).flatMap(createFrameSplitter(300));
        assert.deepEqual(
          read.map((frame) => new Uint8Array(frame)),
          missing === 0 ? sent : sent.slice(0, -1),
        );
      },
    ),
  );
});

test("a frame that is too long is refused before it has come", () => {
  const start = framed(new Uint8Array(301)).subarray(0, 5);
  assert.throws(() => createFrameSplitter(300)(start), /^RangeError: .* 301 bytes/);
});

function framed(frame: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(frame.length);
  return Buffer.concat([length, frame]);
}

function splitChunks(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [
    0,
    ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b),
    bytes.length,
  ];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}
