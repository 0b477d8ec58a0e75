import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  canTransition,
  isTerminal,
  jobKind,
  type JobStatus,
  jobStatus,
  transitionTable,
} from "../../src/contract/jobs/status.ts";

const kinds = fc.constantFrom(...jobKind.options);
const statuses = fc.constantFrom(...jobStatus.options);

test("canTransition() lets nothing follow a final status", () => {
  fc.assert(
    fc.property(kinds, statuses, statuses, (kind, from, to) => {
      assert.ok(!(isTerminal(from) && canTransition(kind, from, to)));
    }),
  );
});

test("canTransition() leads every job to a final status, unless it waits again", () => {
  fc.assert(
    fc.property(kinds, fc.infiniteStream(fc.nat()), (kind, choices) => {
      let status: JobStatus = "Pending";
      for (let steps = 0; !isTerminal(status); steps++) {
        assert.ok(steps < jobStatus.options.length, `still ${status} after ${steps} transitions`);
        const all: readonly JobStatus[] = transitionTable[kind][status];
        const next = all.filter((each) => each !== "Pending");
        const choice: number = choices.next().value;
        const chosen: JobStatus | undefined = next[choice % next.length];
        assert.ok(chosen !== undefined, `nothing follows ${status}`);
        status = chosen;
      }
    }),
  );
});

test("canTransition() lets every unfinished status be cancelled", () => {
  fc.assert(
    fc.property(kinds, statuses, (kind, status) => {
      const live = transitionTable[kind][status].length > 0 && status !== "Cancelling";
      assert.equal(canTransition(kind, status, "Cancelling"), live);
    }),
  );
});

test("canTransition() lets a job wait again while it works, and at no other time", () => {
  for (const kind of jobKind.options) {
    const working = jobStatus.options.filter((from) => canTransition(kind, from, "Pending"));
    assert.deepEqual(working, kind === "compress" ? ["Sharding", "Optimizing"] : ["Optimizing"]);
  }
});

test("canTransition() keeps a direct quantization out of Sharding", () => {
  for (const from of jobStatus.options)
    assert.equal(canTransition("quantize", from, "Sharding"), false);
});
