import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import type { Lane } from "../../src/controller-runtime/controller.ts";
import { WorkQueue } from "../../src/controller-runtime/work-queue.ts";
import { createManualClock } from "./manual-clock.ts";

function makeQueue() {
  const clock = createManualClock();
  return { clock, queue: new WorkQueue({ clock }) };
}

/** Takes and finishes what waits, in the queue's order. */
async function drain(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = [];
  while (queue.stats().depth > 0) {
    const key = await queue.take();
    assert.ok(key !== undefined);
    keys.push(key);
    queue.done(key);
  }
  return keys;
}

test("a key that is added many times before it is taken is worked on once", async () => {
  const { queue } = makeQueue();
  for (const key of ["a", "b", "a", "a"]) queue.add(key);
  assert.deepEqual(await drain(queue), ["a", "b"]);
});

test("a key that is added while it is worked on runs once more, afterwards", async () => {
  const { queue } = makeQueue();
  queue.add("a");
  await queue.take();
  queue.add("a");
  queue.add("a");
  assert.equal(queue.stats().depth, 0);
  queue.done("a");
  assert.deepEqual(await drain(queue), ["a"]);
});

test("what is urgent goes first and a resync last, but nothing waits for ever", async () => {
  const { queue } = makeQueue();
  queue.add("resync", "resync");
  queue.add("normal");
  queue.add("urgent", "urgent");
  queue.add("raised", "resync");
  queue.add("raised", "urgent");
  queue.add("raised", "resync");
  assert.deepEqual(await drain(queue), ["urgent", "raised", "normal", "resync"]);

  queue.add("patient", "resync");
  let taken: string | undefined;
  for (let i = 0; taken !== "patient"; i++) {
    assert.ok(i < 100, "the resync is never served while urgent keys keep coming");
    queue.add(`urgent ${i}`, "urgent");
    queue.add(`urgent ${i} too`, "urgent");
    taken = await queue.take();
    queue.done(taken ?? "");
  }
});

test("of several delays of one key the shortest counts, and the key runs once", async () => {
  const { clock, queue } = makeQueue();
  queue.addAfter("a", 5_000);
  queue.addAfter("a", 1_000);
  queue.addAfter("a", 3_000);
  clock.advance(999);
  assert.equal(queue.stats().depth, 0);
  clock.advance(1);
  assert.deepEqual(await drain(queue), ["a"]);
  clock.advance(60_000);
  assert.equal(queue.stats().depth, 0);
});

test("keys of a group come at once, each of them once", async () => {
  const { clock, queue } = makeQueue();
  for (const key of ["a", "b", "a"]) {
    clock.advance(10);
    queue.addToGroup(key);
  }
  queue.addToGroup("taken before");
  queue.add("taken before");
  assert.deepEqual(await drain(queue), ["taken before"]);
  for (let waitedMs = 0; queue.stats().depth === 0; waitedMs++) {
    assert.ok(waitedMs < 250, "the group does not come");
    clock.advance(1);
  }
  assert.deepEqual(await drain(queue), ["a", "b"]);
});

test("a delay is over when the key is taken before", async () => {
  const { clock, queue } = makeQueue();
  queue.addAfter("a", 5_000);
  queue.add("a");
  assert.deepEqual(await drain(queue), ["a"]);
  clock.advance(60_000);
  assert.equal(queue.stats().depth, 0);
});

test("retries come at doubling intervals up to a minute, until the key is forgotten", () => {
  const { clock, queue } = makeQueue();
  const intervals = Array.from({ length: 16 }, () => {
    queue.retry("a");
    let ms = 0;
    while (queue.stats().delayed > 0) {
      clock.advance(5);
      ms += 5;
    }
    return ms;
  });
  assert.deepEqual(intervals.slice(0, 5), [5, 10, 20, 40, 80]);
  assert.deepEqual(intervals.slice(-2), [60_000, 60_000]);
  queue.forget("a");
  queue.retry("a");
  clock.advance(5);
  assert.equal(queue.stats().delayed, 0);
});

test("a queue that is closed hands out nothing more and waits for the work in progress", async () => {
  const { clock, queue } = makeQueue();
  queue.add("worked on");
  queue.add("waiting");
  queue.addAfter("delayed", 1_000);
  await queue.take();
  queue.add("worked on");
  const events: string[] = [];
  const closed = queue.close().then(() => events.push("closed"));
  queue.add("late");
  queue.retry("late");
  assert.equal(await queue.take(), undefined);
  await turn();
  events.push("done");
  queue.done("worked on");
  await closed;
  assert.deepEqual(events, ["done", "closed"]);
  assert.deepEqual({ ...queue.stats(), pending: clock.pending }, { ...idle, pending: 0 });
});

const idle = {
  depth: 0,
  delayed: 0,
  processing: 0,
  unfinishedSeconds: 0,
  longestRunningSeconds: 0,
};

test("the figures say how long keys waited and are worked on", async () => {
  const clock = createManualClock();
  const seen: string[] = [];
  const queue = new WorkQueue({
    clock,
    observer: {
      added: () => seen.push("added"),
      retried: () => seen.push("retried"),
      taken: (seconds) => seen.push(`waited ${seconds} s`),
      done: (seconds) => seen.push(`worked ${seconds} s`),
    },
  });
  queue.add("a");
  clock.advance(2_000);
  await queue.take();
  queue.add("b");
  clock.advance(1_000);
  await queue.take();
  clock.advance(3_000);
  assert.deepEqual(queue.stats(), {
    ...idle,
    processing: 2,
    unfinishedSeconds: 7,
    longestRunningSeconds: 4,
  });
  queue.done("a");
  queue.retry("a");
  assert.deepEqual(seen, ["added", "waited 2 s", "added", "waited 1 s", "worked 4 s", "retried"]);
});

const key = fc.constantFrom("a", "b", "c");
const step = fc.oneof(
  fc.tuple(fc.constant("add" as const), key, fc.constantFrom<Lane>("urgent", "normal", "resync")),
  fc.tuple(fc.constant("addAfter" as const), key, fc.integer({ min: 0, max: 50 })),
  fc.tuple(fc.constant("retry" as const), key),
  fc.tuple(fc.constant("take" as const)),
  fc.tuple(fc.constant("done" as const), key),
  fc.tuple(fc.constant("advance" as const), fc.integer({ min: 1, max: 40 })),
);

/** A queue beside what it owes its callers. */
function makeWatchedQueue() {
  const { clock, queue } = makeQueue();
  const working = new Set<string>();
  const owed = new Set<string>();
  const dueAt = new Map<string, number>();
  const failures = new Map<string, number>();
  const violations: string[] = [];
  const owe = (of: string, ms: number) => {
    if (ms === 0) owed.add(of);
    else dueAt.set(of, Math.min(clock.now() + ms, dueAt.get(of) ?? Infinity));
  };
  const actions = {
    add: (of: string, lane: Lane) => {
      owe(of, 0);
      queue.add(of, lane);
    },
    addAfter: (of: string, ms: number) => {
      owe(of, ms);
      queue.addAfter(of, ms);
    },
    retry: (of: string) => {
      const before = failures.get(of) ?? 0;
      failures.set(of, before + 1);
      owe(of, 5 * 2 ** before);
      queue.retry(of);
    },
    take: () => {
      void queue.take().then((taken) => {
        if (taken === undefined) return;
        if (working.has(taken)) violations.push(`"${taken}" is with two workers`);
        if (!owed.delete(taken)) violations.push(`"${taken}" runs though nobody asked`);
        working.add(taken);
        dueAt.delete(taken);
      });
    },
    done: (of: string) => {
      if (working.delete(of)) queue.done(of);
    },
    advance: (ms: number) => {
      for (const [of, due] of dueAt) {
        if (due <= clock.now() + ms && dueAt.delete(of)) owed.add(of);
      }
      clock.advance(ms);
    },
  };
  return { queue, actions, working, owed, violations };
}

async function act(
  { actions }: ReturnType<typeof makeWatchedQueue>,
  [does, ...args]: [string, ...unknown[]],
) {
  Reflect.apply(Reflect.get(actions, does), undefined, args);
  await turn();
}

test("in any order of events no key is with two workers and every key that is added runs afterwards", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const watched = makeWatchedQueue();
      const { queue, working, owed, violations } = watched;
      for (const each of steps) await act(watched, each);
      await act(watched, ["advance", 60_000]);
      for (let rest = 0; owed.size > 0 && rest < 10; rest++) {
        for (const each of working) await act(watched, ["done", each]);
        if (owed.size > 0) await act(watched, ["take"]);
      }
      assert.deepEqual(violations, []);
      assert.deepEqual([...owed], [], "never run");
      for (const each of working) await act(watched, ["done", each]);
      assert.deepEqual(queue.stats(), idle);
      await queue.close();
    }),
    { numRuns: 500 },
  );
});
