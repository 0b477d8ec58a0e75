import assert from "node:assert/strict";
import test from "node:test";
import { backOffMs, delay, retry } from "../../src/limits/retry.ts";

/** Work that fails so often. */
function failing(times: number): () => Promise<string> {
  let calls = 0;
  return async () => {
    calls++;
    if (calls > times) return "done";
    throw new Error(`failure ${calls}`);
  };
}

test("work that fails is tried again while there is a delay", async () => {
  const counts: number[] = [];
  const result = await retry(failing(3), (_, failures) => counts.push(failures) && 0);
  assert.equal(result, "done");
  assert.deepEqual(counts, [1, 2, 3]);
});

test("the last error is thrown if there is no delay", async () => {
  const twice = retry(failing(5), (_, failures) => (failures === 2 ? undefined : 0));
  await assert.rejects(twice, { message: "failure 2" });
});

test("an error may be replaced by a better one", async () => {
  const replaced = retry(failing(1), (cause) => {
    throw new Error("unavailable", { cause });
  });
  await assert.rejects(replaced, (error: Error) => {
    assert.equal(error.message, "unavailable");
    return (error.cause as Error).message === "failure 1";
  });
});

test("failures and their time count anew after progress", async () => {
  const progress = [0, 1, 1, 0, 1, 2];
  let calls = 0;
  const seen: [number, boolean][] = [];
  const delayAfter = (_: unknown, failures: number, failingMs: number) => {
    seen.push([failures, failingMs > 0]);
    return 1;
  };
  const work = async () => {
    calls++;
    if (calls > 5) return;
    throw new Error("no");
  };
  await retry(work, delayAfter, { countDone: () => progress[calls] ?? 0 });
  // What was done before and is lost is not progress when it is done again.
  assert.deepEqual(seen, [
    [1, false],
    [2, true],
    [3, true],
    [4, true],
    [1, false],
  ]);
});

test("an aborted signal ends a delay, and the work is not tried again", async () => {
  const stop = new AbortController();
  const reason = new Error("stopped");
  let calls = 0;
  const work = async () => {
    calls++;
    throw new Error("no");
  };
  const delayAfter = () => {
    setTimeout(() => stop.abort(reason), 5);
    return 60_000;
  };
  await assert.rejects(retry(work, delayAfter, { signal: stop.signal }), reason);
  assert.equal(calls, 1);
  await assert.rejects(delay(60_000, stop.signal), reason);
});

test("delays double up to the longest, with a random part", () => {
  assert.equal(backOffMs(0, 5_000), 0);
  for (const [failures, full] of [
    [1, 100],
    [2, 200],
    [5, 1_600],
    [50, 5_000],
  ] as const) {
    const ms = backOffMs(failures, 5_000);
    assert.ok(ms >= full / 2 && ms <= full, `${failures}: ${ms}`);
  }
});
