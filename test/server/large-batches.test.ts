import assert from "node:assert/strict";
import test from "node:test";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import { retriedBatch } from "../../src/contract/routes/batch-routes.ts";
import { beginTestWorker, makeTestApp, type TestApp } from "./test-app.ts";
import { countTurns } from "../support/count-turns.ts";

const size = 40;

/** A batch whose jobs were cancelled when each had a file. */
async function producedBatch(app: TestApp): Promise<string> {
  const models = Array.from({ length: size }, (_, i) => {
    return { source: `https://models.example/${i}.onnx` };
  });
  const answer = await app.ask("POST /v1/batches", { body: { models, targets: ["cpu"] } });
  const { id, jobs } = batchSchema.parse(await answer.json());
  for (const job of jobs) {
    const worker = await beginTestWorker(app, job.id);
    const blob = await worker.store("a result");
    await worker.report(
      { type: "status", status: "Sharding" },
      { type: "artifact", artifact: { name: "model.onnx", kind: "model", ...blob } },
      {
        type: "result",
        outcome: "Failed",
        error: { code: "accuracy_below_floor", message: "far off" },
      },
    );
  }
  return id;
}

test("others are answered between the jobs of a batch that is repeated", async (t) => {
  const app = await makeTestApp(t);
  const id = await producedBatch(app);
  const turns = await countTurns(async () => {
    const answer = await app.ask(`POST /v1/batches/${id}/retry`);
    const { batches } = retriedBatch.parse(await answer.json());
    assert.equal(batches.flatMap(({ jobs }) => jobs).length, size);
  });
  assert.ok(turns >= size, `${turns} turns of the event loop`);
});

test("others are answered between the jobs of a batch whose archive is prepared", async (t) => {
  const app = await makeTestApp(t);
  const id = await producedBatch(app);
  t.mock.method(app.blobs, "find", () => Promise.resolve({ bytes: 8 }));
  const turns = await countTurns(async () => {
    const answer = await app.ask(`HEAD /v1/batches/${id}/artifacts`);
    assert.equal(answer.status, 200);
  });
  assert.ok(turns >= size, `${turns} turns of the event loop`);
});
