import assert from "node:assert/strict";
import test from "node:test";
import { createUploadTurns } from "../../../src/storage/s3/upload-turns.ts";

test("one project's uploads keep out neither those of others nor workers", async () => {
  const takeTurn = createUploadTurns();
  const { promise: sent, resolve: finish } = Promise.withResolvers<void>();
  const slow = Array.from({ length: 8 }, () => takeTurn("busy", () => sent));
  await assert.rejects(
    takeTurn("busy", async () => "sent"),
    { code: "unavailable" },
  );
  assert.equal(await takeTurn("other", async () => "sent"), "sent");
  assert.equal(await takeTurn(undefined, async () => "sent"), "sent");
  finish();
  await Promise.all(slow);
  assert.equal(await takeTurn("busy", async () => "sent"), "sent");
});
