import assert from "node:assert/strict";
import test from "node:test";
import { limitUploads } from "../../../src/storage/s3/chunked-uploads.ts";

test("one project's uploads keep out neither those of others nor workers", async () => {
  const limitUpload = limitUploads();
  const { promise: sent, resolve: finish } = Promise.withResolvers<void>();
  const slow = Array.from({ length: 8 }, () => limitUpload("busy", () => sent));
  await assert.rejects(
    limitUpload("busy", async () => "sent"),
    { code: "unavailable" },
  );
  assert.equal(await limitUpload("other", async () => "sent"), "sent");
  assert.equal(await limitUpload(undefined, async () => "sent"), "sent");
  finish();
  await Promise.all(slow);
  assert.equal(await limitUpload("busy", async () => "sent"), "sent");
});
