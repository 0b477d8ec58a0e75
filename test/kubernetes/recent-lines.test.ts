import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RecentLines } from "../../src/kubernetes/pod-log.ts";

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
