import assert from "node:assert/strict";
import test from "node:test";
import { warmUp } from "../../../src/engine/latency/warm-up.ts";

/** A model whose runs take the given milliseconds, the last of them for ever. */
function timeRunsFrom(durations: readonly number[]) {
  let done = 0;
  const batches: number[] = [];
  const timeRuns = async (runs: number) => {
    batches.push(runs);
    return Array.from({ length: runs }, () => {
      const milliseconds = durations[Math.min(done, durations.length - 1)] ?? NaN;
      done += 1;
      return milliseconds;
    });
  };
  return { timeRuns, batches, countRuns: () => done };
}

test("warmUp() goes on while batches become faster", async () => {
  const falling = Array.from({ length: 40 }, (_, run) => 900 * 0.95 ** run);
  const model = timeRunsFrom(falling);
  await warmUp(model.timeRuns);
  assert.ok(model.countRuns() >= 40, `${model.countRuns()} runs`);
});

test("warmUp() chooses batches that are long enough for the clock", async () => {
  assert.equal(await warmUp(timeRunsFrom([3, 0.5]).timeRuns), 10);
  assert.equal(await warmUp(timeRunsFrom([30, 20]).timeRuns), 3);
  assert.equal(await warmUp(timeRunsFrom([900, 800]).timeRuns), 1);
});

test("warmUp() ends after few runs of a slow model that is steady", async () => {
  const model = timeRunsFrom([900, 800]);
  await warmUp(model.timeRuns);
  assert.equal(model.countRuns(), 3);
});

test("warmUp() ends though batches take no time or fall for ever", async () => {
  const idle = timeRunsFrom([0]);
  await warmUp(idle.timeRuns);
  assert.ok(idle.batches.length <= 50);
  const falling = timeRunsFrom(Array.from({ length: 1e4 }, (_, run) => 500 * 0.9 ** run));
  await warmUp(falling.timeRuns);
  assert.ok(falling.batches.length <= 50);
});
