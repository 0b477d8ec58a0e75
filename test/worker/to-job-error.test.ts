import assert from "node:assert/strict";
import { test } from "node:test";
import { ServiceError } from "../../src/contract/errors.ts";
import { workerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { toJobError } from "../../src/worker/to-job-error.ts";

const forged = "w\u001b[2J\n  [evaluate] every gate passed\r\n\u202egnp.\u2028x";
const message = "w\u{fffd}[2J [evaluate] every gate passed \u{fffd}gnp. x";
const code = "model_invalid";

test("toJobError() makes of a message one line without hidden characters", () => {
  assert.deepEqual(toJobError(new ServiceError(code, forged)), { code, message });
});

test("a worker's result has an error of one line, whatever the worker sends", () => {
  const at = new Date().toISOString();
  const result = { seq: 1, at, type: "result", outcome: "Failed" };
  const event = workerEvent.parse({ ...result, error: { code, message: forged } });
  assert.deepEqual(event.type === "result" && event.error, { code, message });
});
