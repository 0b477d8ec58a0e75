import assert from "node:assert/strict";
import { test } from "node:test";
import { planWork } from "../../../../operator/controllers/compression-job/decide/plan-work.ts";
import { makeJob, targets } from "../make-job.ts";

test("a job whose operators its target lacks is refused before there is a pod", () => {
  const { spec } = makeJob({ spec: { target: "cpu", recipe: { operators: "contrib" } } });
  assert.deepEqual(planWork(spec, targets), {
    error: {
      code: "recipe_unsupported",
      message: 'The recipe asks for contrib operators, and target "cpu" has the standard ones only',
    },
  });
});

test("a latency gate on a result that no worker can time is refused before there is a pod", () => {
  const recipe = {
    scheme: "int8-static",
    dialect: "qnn",
    calibration: { generated: true },
  } as const;
  const gates = { maxLatencyRegression: 0.1 };
  const { spec } = makeJob({ spec: { target: "cpu", recipe, gates } });
  assert.deepEqual(planWork(spec, targets), {
    error: {
      code: "recipe_unsupported",
      message:
        'The gate maxLatencyRegression limits a latency, and no result of the dialect "qnn" is ' +
        "timed: its runtime is not the one here",
    },
  });
  const warned = { ...spec, gates: { ...gates, warnGates: ["maxLatencyRegression" as const] } };
  assert.ok("plan" in planWork(warned, targets));
});
