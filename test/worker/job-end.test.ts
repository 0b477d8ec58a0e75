import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { joinLines } from "../../src/contract/text/hidden-characters.ts";
import { terminationMessage } from "../../src/contract/worker-protocol/messages.ts";
import { serializeTerminationMessage } from "../../src/worker/job-end.ts";

test("serializeTerminationMessage() says the outcome in what Kubernetes keeps, whatever the error says", () => {
  const anyText = fc.oneof(
    fc.string({ unit: "binary", maxLength: 4096 }),
    fc.constantFrom("\u0000".repeat(4000), "😀".repeat(3000)),
  );
  fc.assert(
    fc.property(anyText, fc.nat(2 ** 31 - 2), (message, lastSeq) => {
      const text = serializeTerminationMessage({
        outcome: "Failed",
        error: { code: "model_invalid", message },
        lastSeq,
      });
      assert(Buffer.byteLength(text) <= 4096);
      const { error, ...rest } = terminationMessage.parse(JSON.parse(text));
      assert.deepEqual(rest, { outcome: "Failed", lastSeq });
      assert.equal(error?.code, "model_invalid");
      if (Buffer.byteLength(message) <= 600 && message.isWellFormed())
        assert.equal(error.message, joinLines(message));
    }),
  );
});

test("serializeTerminationMessage() truncates a plain error to 1024 characters", () => {
  const message = "x".repeat(4096);
  const text = serializeTerminationMessage({
    outcome: "Failed",
    error: { code: "out_of_memory", message },
    lastSeq: 7,
  });
  const { error } = terminationMessage.parse(JSON.parse(text));
  assert.equal(error?.message, `${message.slice(0, 1023)}…`);
});
