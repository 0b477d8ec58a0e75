import assert from "node:assert/strict";
import test from "node:test";
import { groupCommit } from "../../src/records/database/group-commit.ts";

test("calls that come during a flush share the next one", async () => {
  const flushes: PromiseWithResolvers<void>[] = [];
  const flush = groupCommit(() => {
    const running = Promise.withResolvers<void>();
    flushes.push(running);
    return running.promise;
  });
  const first = flush();
  await new Promise(setImmediate);
  const others = [flush(), flush(), flush()];
  assert.equal(flushes.length, 1);
  flushes[0]?.resolve();
  await first;
  await new Promise(setImmediate);
  assert.equal(flushes.length, 2);
  flushes[1]?.resolve();
  await Promise.all(others);
});

test("a flush that fails fails its callers alone", async () => {
  const failure = new Error("EIO");
  const outcomes = [Promise.reject(failure), Promise.resolve()];
  outcomes[0]?.catch(() => {});
  const flush = groupCommit(() => outcomes.shift() ?? Promise.resolve());
  await assert.rejects(flush(), failure);
  await flush();
});
