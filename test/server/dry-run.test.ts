import assert from "node:assert/strict";
import test from "node:test";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";

test("a dry run reports the size and a report, and holds no gate; after a job it says what that took", async (t) => {
  const { client } = await startRunningService(t, { environment: { MOS_WORKERS: "1" } });
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const recipe = { evaluation: { level: "none" } } as const;
  const quantize = async (asked: object) => {
    const { id } = await client.call("startQuantization", {
      body: { model: { source }, target: "cpu", recipe, ...asked },
    });
    for await (const _ of client.followLogs(id)) continue;
    return client.call("getJob", { params: { id } });
  };
  const asked = { dryRun: true, gates: { minCosine: 0.99 } };
  const single = await quantize(asked);
  const { usage } = (await quantize({})).telemetry;
  const batch = await client.call("submitBatch", {
    body: { models: [{ source }], targets: ["cpu"], kind: "quantize", recipe, ...asked },
  });
  const [{ id } = { id: "" }] = batch.jobs;
  for await (const _ of client.followLogs(id)) continue;
  const inBatch = await client.call("getJob", { params: { id } });
  for (const job of [single, inBatch]) {
    assert.deepEqual(
      [job.dryRun, job.status, job.statusReason, job.gates],
      [true, "Completed", "completed", []],
    );
    assert.equal(job.telemetry.size?.predicted, true);
    assert.deepEqual(
      job.artifacts.map(({ name }) => name),
      ["graph.json", "report.json"],
    );
  }
  assert.equal((await client.call("getBatch", { params: { id: batch.id } })).gatesFailed, 0);
  const [before, after] = [single, inBatch].map(({ telemetry }) => telemetry.forecast);
  assert(before && after && usage);
  assert.equal(before.seconds, undefined);
  const seconds = Number(after.seconds?.toFixed(3));
  assert.deepEqual({ ...after, seconds }, usage);
});
