import assert from "node:assert/strict";
import test from "node:test";
import { maxArtifacts } from "../../src/contract/jobs/artifact.ts";
import { type Job, job } from "../../src/contract/jobs/job.ts";
import { maxReportedOutputs, maxWarnings } from "../../src/contract/jobs/telemetry.ts";
import { limits, textLimits } from "../../src/contract/limits.ts";
import { jobColumns } from "../../src/records/jobs/insert-jobs.ts";
import { makeNewJob, openTestRecords } from "./new-jobs.ts";

function repeat<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** Of three bytes a UTF-16 unit, the most. */
const text = (length: number) => "\u{fffd}".repeat(length);

/** A job with all that a request and its worker may fill it with. */
function fillJob(created: Job): Job {
  const figures = { sqnrDb: -1 / 3, cosine: -1 / 3, maxAbsoluteError: 1 / 3, top1Agreement: 1 / 3 };
  const outputs = repeat(maxReportedOutputs, () => ({ name: text(textLimits.name), ...figures }));
  const accuracy = { level: "outputs", data: "caller", samples: 1, sqnrDb: 1, cosine: 1, outputs };
  const warning = { code: text(textLimits.reason), message: text(textLimits.telemetryWarning) };
  const sha256 = "a".repeat(64);
  const message = text(textLimits.errorMessage);
  return job.parse({
    ...created,
    recipe: { ...created.recipe, exclude: repeat(256, () => "\u{1f600}".repeat(253)) },
    telemetry: {
      progress: { fraction: 1 / 3, message: text(textLimits.progressMessage) },
      accuracy,
      warnings: repeat(maxWarnings, () => warning),
    },
    artifacts: repeat(maxArtifacts, (i) => {
      return { name: `${i}`.padEnd(200, "x"), kind: "manifest", bytes: 2 ** 52, sha256 };
    }),
    statusMessage: message,
    error: { code: "model_opset_unsupported", message },
    transitions: [...created.transitions, { status: "Failed", at: created.createdAt, message }],
  });
}

test("a job may be as large as the fields of its request and its worker can make it", async (t) => {
  const records = await openTestRecords();
  t.after(() => records.close());
  const filled = fillJob(await records.jobs.create("default", makeNewJob()));
  const bytes = Buffer.byteLength(jobColumns(filled).document);
  assert.ok(bytes > 0.75 * limits.jobDocumentBytes, `${bytes} of ${limits.jobDocumentBytes} bytes`);
});

test("a larger job is refused with its size and the limit", async (t) => {
  const records = await openTestRecords();
  t.after(() => records.close());
  const labels = { large: "x".repeat(limits.jobDocumentBytes) };
  await assert.rejects(records.jobs.create("default", makeNewJob({ labels })), {
    code: "payload_too_large",
    message: /^Job "job-.*" would have 104\d+ bytes, of 1048576 at most$/,
  });
});
