import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { limits } from "../../src/contract/limits.ts";
import { findStoredUpload } from "../../src/storage/partial-uploads.ts";

const sha256 = "f".repeat(64);
const named = Array.from({ length: limits.manifestFiles }, (_, i) => {
  return { path: i === 0 ? "net.onnx" : `weights-${i}`, sha256: String(i).padStart(64, "0") };
});

/** Blobs of a manifest, of which those before a number are stored. */
function storeBlobs(stored: number) {
  const text = JSON.stringify({ files: named });
  const counts = { finds: 0, atOnce: 0, most: 0 };
  return {
    counts,
    read: () => Readable.from([text]),
    async find(hash: string) {
      if (hash === sha256) return { bytes: text.length };
      counts.finds++;
      counts.most = Math.max(counts.most, ++counts.atOnce);
      await setImmediate();
      counts.atOnce--;
      return Number(hash) < stored ? { bytes: 1 } : undefined;
    },
  };
}

test("files of a stored manifest are looked for a few at once, all of them", async () => {
  const { counts, ...blobs } = storeBlobs(named.length);
  const upload = await findStoredUpload(blobs, sha256);
  assert.deepEqual(
    upload?.files,
    named.map((file) => ({ ...file, bytes: 1 })),
  );
  assert.deepEqual([counts.finds, counts.most], [named.length, 16]);
});

test("the search ends soon after a file that is not stored, and such a manifest is a plain file", async () => {
  const { counts, ...blobs } = storeBlobs(20);
  const upload = await findStoredUpload(blobs, sha256);
  assert.deepEqual(upload?.files, []);
  assert.equal(counts.finds, 32);
});
