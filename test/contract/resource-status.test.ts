import assert from "node:assert/strict";
import test from "node:test";
import { maxBatchJobs } from "../../src/contract/batches/batch.ts";
import { batchResourceStatus } from "../../src/contract/custom-resources/batch-resource.ts";
import { compressionJobStatus } from "../../src/contract/custom-resources/compression-job.ts";
import { assertFits, contractComplaints } from "../crds/contract-complaints.ts";
import { largestStatus } from "../crds/largest-status.ts";
import { specCases } from "../crds/spec-cases.ts";

const maxStatusBytes = 64 * 1024;

test("the largest status of a CompressionJob has at most 64 KiB", async (t) => {
  const status = compressionJobStatus.strict().parse(await largestStatus("compressionjobs"));
  const { length } = Buffer.from(JSON.stringify(status));
  t.diagnostic(`${length} bytes`);
  assert.ok(length <= maxStatusBytes);
});

test("the largest status of a Batch has at most 64 KiB, a mark of each job in it", async (t) => {
  const status = batchResourceStatus.strict().parse(await largestStatus("batches"));
  const { length } = Buffer.from(JSON.stringify(status));
  t.diagnostic(`${length} bytes`);
  assert.ok(length <= maxStatusBytes);
  assert.equal(status.marks?.length, maxBatchJobs);
});

for (const [what, specCase] of Object.entries(specCases)) {
  const { kind, wrong } = specCase;
  test(`a ${kind} with ${what} is ${wrong === undefined ? "taken" : "refused"}`, () => {
    assertFits(specCase, contractComplaints(specCase));
  });
}
