import assert from "node:assert/strict";
import test from "node:test";
import { restoreUploads } from "../../../src/executors/cluster/restore-uploads.ts";
import { openRecords } from "../../../src/records/open-records.ts";
import { makeNewJob } from "../../records/new-jobs.ts";

const sha256 = "a".repeat(64);
const hour = 3_600_000;

for (const [when, offsetMs, isRestored] of [
  ["an hour before the database was created has its upload again", -hour, true],
  ["after that gets no upload of another project by its hash", hour, false],
] as const) {
  test(`a resource that was created ${when}`, async () => {
    const records = await openRecords(":memory:", { now: () => new Date() });
    await records.projectBlobs.add({ project: "other", origin: null }, { sha256, bytes: 1 });
    const { recipe } = makeNewJob();
    const model = { name: "model.onnx", source: `upload:sha256:${sha256}` };
    const createdAt = new Date(Date.now() + offsetMs).toISOString();
    await restoreUploads(
      { records, findUpload: async () => ({ sha256, bytes: 1, files: [] }) },
      { project: "own", createdAt, jobs: [{ model, recipe }] },
    );
    const upload = { project: "own", repository: undefined, sha256 };
    assert.equal(await records.projectBlobs.has(upload), isRestored);
    await records.close();
  });
}
