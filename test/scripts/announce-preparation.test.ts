import assert from "node:assert/strict";
import test from "node:test";
import { describePreparations } from "../../scripts/announce-preparation.ts";

test("describePreparations() names what is built, for how long, and what is skipped and why", () => {
  const preparations = [
    { title: "Python", minutes: 2, skipped: false },
    { title: "Helm", minutes: 0, skipped: false },
    { title: "A control plane", minutes: 10, skipped: false },
    { title: "A node", minutes: 3, skipped: "Install the Debian packages containerd, runc" },
  ] as const;
  assert.deepEqual(describePreparations(preparations, false), [
    "To be built first, about 12 minutes, once; kept in ~/.cache/model-optimization-service:",
    "  Python: about 2 min",
    "  A control plane: about 10 min",
    "Tests to be skipped. A node: Install the Debian packages containerd, runc",
  ]);
});

test("describePreparations() says so where nothing is to be built", () => {
  const [first, second] = describePreparations(
    [{ title: "Helm", minutes: 0, skipped: false }],
    true,
  );
  assert.equal(first, "Nothing has to be built.");
  assert.match(second ?? "", /^Then all tests run, about \d+ minutes/);
});
