import assert from "node:assert/strict";
import test from "node:test";
import { compressionJobStatus } from "../../src/contract/custom-resources/compression-job.ts";
import { errorTable } from "../../src/contract/errors.ts";
import { job } from "../../src/contract/jobs/job.ts";
import { textLimits } from "../../src/contract/limits.ts";
import { jobStatus } from "../../src/contract/jobs/status.ts";
import {
  type OwnStatusReason,
  statusCause,
  statusReasonTable,
} from "../../src/contract/jobs/status-reasons.ts";

const reasons = Object.keys(statusReasonTable) as OwnStatusReason[];

test("each status but Failed has a reason of the table, and Failed has only error codes", () => {
  const explained = new Set<string>(Object.values(statusReasonTable).map(({ status }) => status));
  const unexplained = jobStatus.options.filter((status) => !explained.has(status));
  assert.deepEqual(unexplained, ["Failed"]);
});

test("no reason of the table is an error code too", () => {
  assert.deepEqual(
    reasons.filter((reason) => reason in errorTable),
    [],
  );
});

for (const reason of reasons) {
  test(`statusCause() gives ${reason} its message, within the bounds of a status`, () => {
    const cause = statusCause(reason);
    assert.deepEqual(cause, { reason, message: statusReasonTable[reason].message });
    assert.match(cause.message, /^[A-Z].*[^.]$/);
    assert.ok(cause.reason.length <= textLimits.reason);
    assert.ok(cause.message.length <= textLimits.statusMessage);
  });
}

for (const [what, schema] of [
  ["a job", job.shape.statusReason],
  ["a CompressionJob", compressionJobStatus.shape.statusReason],
] as const) {
  test(`the description of ${what}'s statusReason names every reason`, () => {
    const described = Array.from(
      (schema.description ?? "").matchAll(/`([^`]*)`/g),
      ([, code]) => code,
    );
    assert.deepEqual(described, reasons);
  });
}
