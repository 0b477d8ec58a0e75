import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readLines, RecentLines } from "../../src/kubernetes/pod-log.ts";

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

test("RecentLines distinguishes new lines from those that come again, whenever the log is opened anew", () => {
  const line = fc.record({
    afterMs: fc.constantFrom(0, 0, 1, 400, 900, 3_000),
    text: fc.constantFrom("a", "b"),
  });
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 30 }),
      fc.array(fc.nat(10), { maxLength: 8 }),
      (steps, reads) => {
        let ms = 1_700_000_000_000;
        const log = steps.map(({ afterMs, text }) => ({
          at: new Date((ms += afterMs)).toISOString(),
          text,
        }));
        const recent = new RecentLines();
        const taken: typeof log = [];
        for (const count of [...reads, Infinity]) {
          recent.expectRepeats();
          const since = Date.parse(recent.since ?? "1970-01-01T00:00:00Z");
          const again = log.filter(({ at }) => Date.parse(at) >= since);
          // A connection that ends after so many lines beyond what is known.
          const known = taken.length - (log.length - again.length);
          for (const read of again.slice(0, known + count))
            if (recent.addIfNew(read)) taken.push(read);
        }
        assert.deepEqual(taken, log);
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
