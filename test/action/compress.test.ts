import assert from "node:assert/strict";
import { copyFile, readdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";
import { prepareStep } from "./run-step.ts";

test("a step compresses the workspace's models and tells what came of it", async (t) => {
  const service = await startRunningService(t);
  const step = await prepareStep(t);
  await copyFile(realModel("ocr-orientation"), path.join(step.workspace, "orientation.onnx"));
  const inputs = {
    "service-url": service.baseUrl,
    token: service.token,
    models: "*.onnx",
    targets: "cpu, cpu-int8",
    gates: "maxSizeRatio: 0.9",
    download: "true",
  };
  const { code, log, outputs, summary } = await step.run(inputs);
  assert.equal(code, 0, log);
  const { conclusion, jobs, completed, failed } = outputs;
  assert.deepEqual(
    { conclusion, jobs, completed, failed },
    { conclusion: "success", jobs: "2", completed: "2", failed: "0" },
  );
  assert.match(summary, /^\| `orientation` \| `cpu-int8` \| ✅ Completed \|.*\| 1 passed \|$/m);
  assert.match(log, /^::add-mask::mos_/m);
  assert.match(log, /^::group::orientation for cpu$/m);
  assert.match(log, /^\[evaluate\]/m);
  assert.deepEqual((await readdir(outputs["artifacts"] ?? "")).toSorted(), ["orientation-cpu", "orientation-cpu-int8"]);
});

test("a step fails where a gate fails", async (t) => {
  const service = await startRunningService(t);
  const step = await prepareStep(t);
  await copyFile(realModel("ocr-orientation"), path.join(step.workspace, "orientation.onnx"));
  const { code, outputs, summary } = await step.run({
    "service-url": service.baseUrl,
    token: service.token,
    models: "orientation.onnx",
    targets: "cpu",
    gates: "maxSizeRatio: 0.01",
  });
  assert.equal(code, 1);
  assert.equal(outputs["conclusion"], "failure");
  assert.match(summary, /maxSizeRatio \S+ > 0.01/);
});
