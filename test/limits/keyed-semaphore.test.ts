import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedSemaphore } from "../../src/limits/keyed-semaphore.ts";

test("one key keeps out itself, not the others, and all together stop at the limit of all", () => {
  const semaphore = new KeyedSemaphore({ all: 3, perKey: 2 });
  const first = semaphore.tryAcquire("a");
  assert.ok(first);
  assert.ok(semaphore.tryAcquire("a"));
  assert.equal(semaphore.tryAcquire("a"), undefined);
  assert.ok(semaphore.tryAcquire("b"));
  assert.equal(semaphore.tryAcquire("c"), undefined);
  first[Symbol.dispose]();
  assert.ok(semaphore.tryAcquire("c"));
});

test("callers wait in their order, and a key at its limit is passed over", async () => {
  const semaphore = new KeyedSemaphore({ all: 2, perKey: 1 });
  const order: string[] = [];
  const [a, b] = [await semaphore.acquire("a"), await semaphore.acquire("b")];
  const enter = async (key: string, name: string) => {
    using held = await semaphore.acquire(key);
    assert.ok(held);
    order.push(name);
  };
  const waiting = [enter("a", "a2"), enter("b", "b2"), enter("c", "c1")];
  b?.[Symbol.dispose]();
  await waiting[1];
  assert.deepEqual(order.slice(0, 1), ["b2"]);
  a?.[Symbol.dispose]();
  await Promise.all(waiting);
  assert.deepEqual(order.toSorted(), ["a2", "b2", "c1"]);
});

test("a key for which too many wait is refused, and only it", async () => {
  const semaphore = new KeyedSemaphore({ perKey: 1, waitingPerKey: 1 });
  const held = await semaphore.acquire("a");
  const waiting = semaphore.acquire("a");
  assert.equal(await semaphore.acquire("a"), undefined);
  assert.ok(await semaphore.acquire("b"));
  held?.[Symbol.dispose]();
  assert.ok(await waiting);
});
