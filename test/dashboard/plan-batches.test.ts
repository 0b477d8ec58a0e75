import assert from "node:assert/strict";
import test from "node:test";
import { listPlannedJobs, planBatches } from "../../src/dashboard/new-batch/plan-batches.ts";

test("a job is planned by the name that it is started with, whose earlier jobs say what it takes", () => {
  const source = `upload:sha256:${"0".repeat(64)}`;
  const plan = {
    models: [
      { source, name: "voice" },
      { source: "https://models.test/a.onnx", name: "unnamed upload" },
    ],
    targets: ["cpu"],
    recipes: ["target"],
    name: "",
    maxSizeRatio: "",
    minSqnrDb: "",
  };
  const planned = listPlannedJobs(plan).map(({ request }) => request.model);
  assert.deepEqual(planned, planBatches(plan).requests[0]?.models);
  assert.deepEqual(
    planned.map(({ name }) => name),
    ["voice", undefined],
  );
});

test("what is wrong with a batch is said by its fields", () => {
  const plan = {
    models: [{ source: `upload:sha256:${"0".repeat(64)}`, name: "voice" }],
    targets: ["cpu"],
    recipes: ["target", "fp16"],
    name: "n".repeat(201),
    maxSizeRatio: "0,5",
    minSqnrDb: "20",
  };
  const { messages } = planBatches(plan);
  assert.deepEqual(Object.keys(messages).toSorted(), ["maxSizeRatio", "name"]);
  assert.match(messages["name"] ?? "", /1 to 200 characters$/);
});
