import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../../../operator/controllers/compression-job/decide/decide.ts";
import { planWork } from "../../../../operator/controllers/compression-job/decide/plan-work.ts";
import type { ObservedState } from "../../../../operator/controllers/compression-job/observe/observed-state.ts";
import { makeChild, makeJob, makeObservedState, start, targets } from "../make-job.ts";

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

test("decide() sizes the pod that runs a model by what that is known to take", () => {
  const takes = (mebibytes: number) => ({ peakMemoryBytes: mebibytes * 2 ** 20, diskBytes: 0 });
  const requestedMemory = (fields: Partial<ObservedState>) => {
    const observed = makeObservedState({ ...fields, knownCosts: takes(900) });
    const create = decide(observed).actions.find(({ type }) => type === "createWorkerJob");
    assert.ok(create?.type === "createWorkerJob");
    return create.manifest.spec?.template.spec?.containers[0]?.resources?.requests?.["memory"];
  };
  assert.equal(requestedMemory({}), "900Mi");
  assert.equal(requestedMemory({ resource: makeJob({ spec: { dryRun: true } }) }), "256Mi");
  const parallel = makeJob({ spec: { recipe: { parallelism: 3 } } });
  const end = { complete: true, reason: "", message: "", at: start + 60_000 };
  const after = (step: "shard" | "optimize", resource = parallel) =>
    requestedMemory({ resource, workerJobs: [makeChild(parallel, { step, parallelism: 3, end })] });
  assert.equal(after("shard"), "256Mi");
  assert.equal(after("optimize"), "900Mi");
  const report = { telemetry: { forecast: takes(700) } };
  assert.equal(
    after("optimize", { ...parallel, status: { status: "Optimizing", report } }),
    "700Mi",
  );
});
