import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { writeLayeredModel } from "../support/layered-model.ts";
import { exitCode, makeJob, summarizeEvents } from "./worker-process.ts";

test("the worker searches the recipe for a goal, and stores it", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "search-"));
  t.after(async () => rm(folder, { recursive: true }));
  const model = path.join(folder, "layered.onnx");
  await writeLayeredModel(model);
  const evaluation = { samples: 2, latencyBudgetSeconds: 0 };
  const recipe = { auto: { minSqnrDb: 30, samples: 2, points: 2 }, evaluation };
  const { service, start } = await makeJob(t, pathToFileURL(model).href, { recipe });
  assert.equal(await exitCode(start()), workerExit.completed);
  const { telemetry, artifacts } = summarizeEvents(service.events);
  assert(telemetry.search?.reached);
  assert.equal(telemetry.search.mostSensitive[0]?.name, "bad");
  const chosen = telemetry.search.points.find((point) => point.chosen);
  assert.equal(chosen?.bytes, telemetry.size?.resultBytes);
  assert(telemetry.accuracy && telemetry.accuracy.sqnrDb >= 30);
  assert(artifacts.some(({ name, kind }) => name === "recipe.json" && kind === "recipe"));
});
