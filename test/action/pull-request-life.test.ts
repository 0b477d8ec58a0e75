import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { realModel } from "../support/real-models.ts";
import { prepareStep } from "./prepare-step.ts";
import { commits, type WorkflowEvent, workflowEvents } from "./support/workflow-event.ts";
import { writeWorkspaceModel } from "./workspace-models.ts";

const movedBase = "6".repeat(40);
const laterHead = "7".repeat(40);
const gates = "maxSizeRegression: 0.05";
const unevaluated = "evaluation: { level: none }";
const smaller = `{ scheme: int4-weight, ${unevaluated} }`;
const larger = `{ scheme: int8-weight, ${unevaluated} }`;
/** A push to the branch that pull requests are compared with. */
const toBase = (sha: string) => ({
  environment: { GITHUB_SHA: sha, GITHUB_RUN_ID: sha.slice(0, 3) },
});

/** The pull request once more, with other commits. */
function pullRequest({
  head = commits.head,
  base = commits.base,
}: {
  readonly head?: string;
  readonly base?: string;
} = {}): WorkflowEvent {
  const { environment, payload } = workflowEvents.pullRequest;
  const changed = structuredClone(payload) as {
    pull_request: { head: { sha: string }; base: { sha: string } };
  };
  changed.pull_request.head.sha = head;
  changed.pull_request.base.sha = base;
  return { environment, payload: changed };
}

test("a base that moved on is compared with where the pull request left it, else with its newest", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  await run({ gates, recipe: larger }, toBase(commits.base));
  await run({ gates, recipe: smaller }, toBase(movedBase));
  const propose = async (base: string, attempt: string) => {
    const options = { event: pullRequest({ base }), environment: { GITHUB_RUN_ID: attempt } };
    return (await run({ gates, recipe: larger, "job-checks": "none" }, options)).summary;
  };
  assert.match(await propose(commits.base, "10"), /1 job passed/);

  // The commit that GitHub names was never built; the one that both have in common was.
  const unbuilt = "8".repeat(40);
  gitHub.mergeBases.set(`${unbuilt}...${commits.head}`, commits.base);
  assert.match(await propose(unbuilt, "11"), /1 job passed/);
  gitHub.mergeBases.set(`${unbuilt}...${commits.head}`, unbuilt);
  assert.match(await propose(unbuilt, "12"), /grew by .* against main; 5 % are allowed/);
});

test("a group of the merge queue is checked on its own commit, and records no baseline", async (t) => {
  const { service, gitHub, run } = await prepareStep(t);
  await run({ recipe: smaller }, toBase(commits.base));
  const { code, outputs } = await run(
    { gates, recipe: larger },
    { event: workflowEvents.mergeGroup },
  );
  assert.deepEqual([code, outputs["conclusion"]], [1, "failure"]);
  const checks = gitHub.checkRuns().filter(({ head_sha: sha }) => sha === commits.head);
  assert.deepEqual(
    checks.map(({ name, conclusion }) => [name, conclusion]),
    [
      ["Model compression", "failure"],
      ["Model compression: a for cpu", "failure"],
    ],
  );
  const params = { id: outputs["batch-id"] ?? "" };
  const { revision } = await service.client.call("getBatch", { params });
  assert.deepEqual(revision?.recordBaseline, false);
});

test("a push that a newer one replaces ends as cancelled, and the newer one is not touched", async (t) => {
  const { service, gitHub, runner, inputs, run } = await prepareStep(t, {
    environment: { MOS_WORKERS: "1" },
  });
  await copyFile(realModel("ocr-recognition"), path.join(runner.workspace, "slow.onnx"));
  const slow = {
    ...inputs,
    models: "slow.onnx",
    recipe: "evaluation: { samples: 1024, latencyBudgetSeconds: 0 }",
  };
  const older = await runner.start(slow, { event: pullRequest({}) });
  await older.untilLog(/^\[evaluate\]/m);
  const newer = run(
    { "job-checks": "none" },
    { event: pullRequest({ head: laterHead }), environment: { GITHUB_RUN_ID: "2" } },
  );
  const { outputs } = await older.cancel();
  assert.equal(outputs["conclusion"], "cancelled");
  const { outputs: ofNewer, log } = await newer;
  assert.equal(ofNewer["conclusion"], "success", log);
  assert.deepEqual(
    new Map(gitHub.checkRuns().map(({ head_sha: sha, conclusion }) => [sha, conclusion])),
    new Map([
      [commits.head, "cancelled"],
      [laterHead, "success"],
    ]),
  );
  const { batches } = await service.client.call("listBatches", {});
  assert.deepEqual(
    new Set(batches.map(({ status }) => status)),
    new Set(["Cancelled", "Completed"]),
  );
});

test("of a hundred models, those two are sent that a pull request changes", async (t) => {
  const { runner, run } = await prepareStep(t);
  const write = (i: number, seed: number) =>
    writeWorkspaceModel(runner.workspace, `m${i}.onnx`, seed);
  for (let i = 0; i < 100; i++) await write(i, i);
  const left = { models: "m*.onnx", wait: "false", "github-token": "" };
  const first = await run(left);
  assert.equal(first.log.match(/^\[upload\] m\d+\.onnx: uploaded, /gm)?.length, 100, first.log);
  await write(17, 1017);
  await write(60, 1060);
  const second = await run(left, { event: pullRequest({}), environment: { GITHUB_RUN_ID: "2" } });
  const sent = second.log.match(/^\[upload\] m\d+\.onnx: uploaded/gm) ?? [];
  assert.deepEqual(
    new Set(sent),
    new Set(["[upload] m17.onnx: uploaded", "[upload] m60.onnx: uploaded"]),
  );
  assert.equal(second.log.match(/^\[upload\] m\d+\.onnx: unchanged, /gm)?.length, 98);
});

test("a later push runs what it changes; what passed with the same bytes is reported for its commit", async (t) => {
  const { service, gitHub, runner, run } = await prepareStep(t);
  await writeWorkspaceModel(runner.workspace, "b.onnx", 2);
  const inputs = { models: "*.onnx", recipe: larger, gates };
  await run(inputs, toBase(commits.base));
  const propose = (head: string, id: string, more = {}) =>
    run(
      { ...inputs, ...more },
      { event: pullRequest({ head }), environment: { GITHUB_RUN_ID: id } },
    );
  await propose(commits.head, "10");
  await writeWorkspaceModel(runner.workspace, "b.onnx", 3);
  const later = await propose(laterHead, "11");
  assert.match(later.log, /^a for cpu: passed in an earlier run, with the same bytes$/m);
  const params = { id: later.outputs["batch-id"] ?? "" };
  const { jobs } = await service.client.call("getBatch", { params });
  assert.deepEqual(
    jobs.map(({ model }) => model),
    ["b"],
  );
  assert.deepEqual([later.outputs["jobs"], later.outputs["conclusion"]], ["2", "success"]);
  const checks = gitHub.checkRuns().filter(({ head_sha: sha }) => sha === laterHead);
  assert.deepEqual(
    new Set(checks.map(({ name }) => name)),
    new Set(["Model compression", "Model compression: a for cpu", "Model compression: b for cpu"]),
  );
  assert.ok(checks.every(({ conclusion }) => conclusion === "success"));

  // Another request, and a commit of the base branch, are run whole.
  const other = await propose(laterHead, "12", { gates: "maxSizeRegression: 0.06" });
  const pushed = await run(inputs, toBase(movedBase));
  for (const { log } of [other, pushed]) assert.doesNotMatch(log, /passed in an earlier run/);
});

test("what had no baseline is compared once there is one, when its run is repeated", async (t) => {
  const { run } = await prepareStep(t);
  const inputs = { gates, recipe: larger };
  const propose = (attempt: string) =>
    run(inputs, { event: pullRequest(), environment: { GITHUB_RUN_ATTEMPT: attempt } });
  const first = await propose("1");
  assert.equal(first.outputs["conclusion"], "neutral");
  assert.match(first.summary, /Run the workflow on the base branch once/);
  await run(inputs, toBase(commits.base));
  assert.equal((await propose("2")).outputs["conclusion"], "success");
  const third = await propose("3");
  assert.match(third.log, /^a for cpu: passed in an earlier run/m);
  assert.deepEqual([third.outputs["conclusion"], third.outputs["jobs"]], ["success", "1"]);
});
