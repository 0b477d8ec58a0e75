import assert from "node:assert/strict";
import test from "node:test";
import { prepareStep } from "./prepare-step.ts";
import { commits, workflowEvents } from "./support/workflow-event.ts";

const pullRequest = { event: workflowEvents.pullRequest };
const toBase = { environment: { GITHUB_SHA: commits.base, GITHUB_RUN_ID: "1" } };
const gates = "maxSizeRegression: 0.05";

function recipeOf(scheme: string): string {
  return `scheme: ${scheme}\nevaluation: { level: none }`;
}

test("a pull request that makes the result larger than the base branch's fails", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const pushed = await run({ gates, recipe: recipeOf("int4-weight") }, toBase);
  assert.equal(pushed.code, 0, pushed.log);
  const { code, summary } = await run({ gates, recipe: recipeOf("int8-weight") }, pullRequest);
  assert.equal(code, 1);
  assert.match(summary, /is .* % larger than that of main; 5 % are allowed/);
  assert.equal(gitHub.checkRuns().at(-1)?.conclusion, "failure");
});

test("without a baseline the check is neutral, and the step goes on", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const { code, outputs, summary } = await run({ gates, "job-checks": "none" }, pullRequest);
  assert.equal(code, 0);
  assert.equal(outputs["conclusion"], "neutral");
  assert.match(summary, /There is no baseline/);
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion }) => conclusion),
    ["neutral"],
  );
});

test("a pull request records no baseline, and a token that may not says so", async (t) => {
  const { service, run } = await prepareStep(t);
  const { outputs } = await run({}, pullRequest);
  const ofPullRequest = await service.client.call("getBatch", {
    params: { id: outputs["batch-id"] ?? "" },
  });
  assert.equal(ofPullRequest.revision?.recordBaseline, false);
  assert.deepEqual(ofPullRequest.revision.base, { branch: "main", sha: commits.base });
  const body = { name: "ci", scopes: ["jobs:read", "jobs:write", "models:write"] as const };
  const { token } = await service.client.call("createToken", {
    body: { ...body, scopes: [...body.scopes] },
  });
  const pushed = await run({ token });
  assert.equal(pushed.code, 0, pushed.log);
  assert.ok(
    pushed.commands.some(
      ({ command, message }) => command === "notice" && /baselines:write/.test(message),
    ),
  );
});

test("the merge base is asked of GitHub, and another branch can be compared with", async (t) => {
  const { service, gitHub, run } = await prepareStep(t);
  gitHub.mergeBases.set(`${commits.base}...${commits.head}`, "f".repeat(40));
  const first = await run({ "dry-run": "true" }, pullRequest);
  const batch = await service.client.call("getBatch", {
    params: { id: first.outputs["batch-id"] ?? "" },
  });
  assert.deepEqual(batch.revision?.base, {
    branch: "main",
    sha: commits.base,
    mergeBase: "f".repeat(40),
  });
  assert.equal(batch.suite, "acme/models: Model compression");
  const second = await run({ "dry-run": "true", baseline: "release" }, pullRequest);
  const other = await service.client.call("getBatch", {
    params: { id: second.outputs["batch-id"] ?? "" },
  });
  assert.deepEqual(other.revision?.base, { branch: "release" });
  const third = await run({ "dry-run": "true", baseline: "none" }, pullRequest);
  const none = await service.client.call("getBatch", {
    params: { id: third.outputs["batch-id"] ?? "" },
  });
  assert.equal(none.revision?.base, undefined);
});
