import assert from "node:assert/strict";
import { test } from "node:test";
import { runFuzz } from "./fuzz/run-fuzz.ts";

test("compressModel() ends every mutated model with a result or an error of the service, in bounded time and memory", async () => {
  const { inputs, outcomes, findings } = await runFuzz({
    seed: 1,
    inputs: 800,
    seconds: 60,
    processes: 2,
  });
  assert.deepEqual(findings, []);
  assert.equal(inputs, 800);
  assert.ok(
    (outcomes["success"] ?? 0) > 100,
    `Too few inputs reached the end: ${JSON.stringify(outcomes)}`,
  );
});
