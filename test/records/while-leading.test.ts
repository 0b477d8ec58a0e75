import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { whileLeading } from "../../src/records/database/while-leading.ts";

const ignore = () => {};

test("work runs at once, when it is woken and after a pause, while the replica leads", async () => {
  let leads = true;
  const wakeups = new EventEmitter();
  const runs = new EventEmitter();
  let count = 0;
  const work = async () => {
    count++;
    runs.emit("run");
  };
  await using _loop = whileLeading({ isLeader: () => leads }, work, {
    everyMs: 20,
    wakeOn: (wake) => {
      wakeups.on("wake", wake);
      return () => wakeups.off("wake", wake);
    },
    onError: ignore,
  });
  assert.equal(count, 1);
  await once(runs, "run");
  assert.equal(count, 2);
  leads = false;
  await turn();
  wakeups.emit("wake");
  await turn();
  assert.equal(count, 2);
  leads = true;
  wakeups.emit("wake");
  await once(runs, "run");
  assert.equal(count, 3);
});

test("what wakes the work while it runs lets it run again; its errors end nothing", async () => {
  let wakeUp = ignore;
  let isSubscribed = true;
  const errors: unknown[] = [];
  const again = Promise.withResolvers<void>();
  const work = async () => {
    if (errors.length > 0) return again.resolve();
    wakeUp();
    throw new Error("failed");
  };
  const loop = whileLeading({ isLeader: () => true }, work, {
    everyMs: 60_000,
    wakeOn: (wake) => {
      wakeUp = wake;
      return () => (isSubscribed = false);
    },
    onError: (error) => errors.push(error),
  });
  await again.promise;
  assert.equal(errors.length, 1);
  await loop[Symbol.asyncDispose]();
  assert.equal(isSubscribed, false);
});

test("the end aborts the work and waits for it", async () => {
  let isAborted = false;
  const work = async (signal: AbortSignal) => {
    await once(signal, "abort");
    await turn();
    isAborted = true;
  };
  const loop = whileLeading({ isLeader: () => true }, work, {
    everyMs: 60_000,
    wakeOn: () => ignore,
    onError: ignore,
  });
  await loop[Symbol.asyncDispose]();
  assert.equal(isAborted, true);
});
