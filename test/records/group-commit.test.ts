import assert from "node:assert/strict";
import test from "node:test";
import { groupCommit } from "../../src/records/database/group-commit.ts";

test("writers that wait at once share a flush, and none is answered before it has ended", async () => {
  const flushes: PromiseWithResolvers<void>[] = [];
  const flush = groupCommit(() => {
    const running = Promise.withResolvers<void>();
    flushes.push(running);
    return running.promise;
  });
  const answered: string[] = [];
  const write = (name: string) => flush().then(() => answered.push(name));
  const first = write("first");
  await new Promise(setImmediate);
  const others = ["second", "third", "fourth"].map(write);
  assert.equal(flushes.length, 1);
  flushes[0]?.resolve();
  await first;
  await new Promise(setImmediate);
  // What they wrote may have come too late for the flush that was running.
  assert.deepEqual([flushes.length, answered], [2, ["first"]]);
  flushes[1]?.resolve();
  await Promise.all(others);
  assert.deepEqual([flushes.length, answered.length], [2, 4]);
});

test("a flush that fails is an error to those who waited for it, and to no later writer", async () => {
  const failure = new Error("EIO");
  const outcomes = [Promise.reject(failure), Promise.resolve()];
  outcomes[0]?.catch(() => {});
  const flush = groupCommit(() => outcomes.shift() ?? Promise.resolve());
  await assert.rejects(flush(), failure);
  await flush();
});
