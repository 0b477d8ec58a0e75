import assert from "node:assert/strict";
import test from "node:test";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";

test("a dry run reports the size and a report, and holds no gate, alone and in a batch", async (t) => {
  const { client } = await startRunningService(t, { environment: { MOS_WORKERS: "1" } });
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  const asked = { dryRun: true, gates: { minCosine: 0.99 } };
  const single = await client.call("startQuantization", {
    body: { model: { source }, target: "cpu", ...asked },
    headers: { prefer: "wait=60" },
  });
  const batch = await client.call("submitBatch", {
    body: { models: [{ source }], targets: ["cpu"], ...asked },
  });
  const ids = [single.id, ...batch.jobs.map(({ id }) => id)];
  assert.equal(ids.length, 2);
  for (const id of ids) {
    const following = client.followLogs(id);
    while ((await following.next()).done !== true);
    const job = await client.call("getJob", { params: { id } });
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
});
