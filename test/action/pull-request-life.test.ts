import assert from "node:assert/strict";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { writeFloatsNpz } from "../support/npz.ts";
import { realModel } from "../support/real-models.ts";
import { type PreparedStep, prepareStep } from "./prepare-step.ts";
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

/** A step whose check runs have a name of their own, so that its suite is nobody else's. */
interface NamedStep extends PreparedStep {
  readonly checkRuns: PreparedStep["gitHub"]["checkRuns"];
  /** Whose files the service may read. */
  readonly folder: string;
}

const cases: Readonly<Record<string, (step: NamedStep) => Promise<void>>> = {
  "a base that moved on is compared with where the pull request left it, else with its newest":
    async ({ gitHub, run }) => {
      await run({ gates, recipe: larger }, toBase(commits.base));
      await run({ gates, recipe: smaller }, toBase(movedBase));
      const propose = async (base: string, id: string) => {
        const options = { event: pullRequest({ base }), environment: { GITHUB_RUN_ID: id } };
        return (await run({ gates, recipe: larger, "job-checks": "none" }, options)).summary;
      };
      assert.match(await propose(commits.base, "10"), /1 job passed/);

      // The commit that GitHub names was never built; the one that both have in common was.
      const unbuilt = "8".repeat(40);
      gitHub.mergeBases.set(`${unbuilt}...${commits.head}`, commits.base);
      assert.match(await propose(unbuilt, "11"), /1 job passed/);
      gitHub.mergeBases.set(`${unbuilt}...${commits.head}`, unbuilt);
      assert.match(
        await propose(unbuilt, "12"),
        /is .* % larger than that of main; 5 % are allowed/,
      );
    },

  "a group of the merge queue is checked on its own commit, and records no baseline": async ({
    service,
    run,
    checkRuns,
  }) => {
    await run({ recipe: smaller }, toBase(commits.base));
    const event = workflowEvents.mergeGroup;
    const { code, outputs } = await run({ gates, recipe: larger }, { event });
    assert.deepEqual([code, outputs["conclusion"]], [1, "failure"]);
    const checks = checkRuns().filter(({ head_sha: sha }) => sha === commits.head);
    assert.equal(checks.length, 2);
    assert.ok(checks.every(({ conclusion }) => conclusion === "failure"));
    const params = { id: outputs["batch-id"] ?? "" };
    const { revision } = await service.client.call("getBatch", { params });
    assert.equal(revision?.recordBaseline, false);
  },

  "a push that a newer one replaces ends as cancelled, and the newer one is not touched": async ({
    service,
    runner,
    inputs,
    run,
    checkRuns,
  }) => {
    await copyFile(realModel("ocr-recognition"), path.join(runner.workspace, "slow.onnx"));
    const slow = {
      ...inputs,
      models: "slow.onnx",
      recipe: "evaluation: { samples: 1024, latencyBudgetSeconds: 0 }",
    };
    const older = await runner.start(slow, { event: pullRequest() });
    await older.untilLog(/^\[evaluate\]/m);
    const newer = run(
      { "job-checks": "none" },
      { event: pullRequest({ head: laterHead }), environment: { GITHUB_RUN_ID: "2" } },
    );
    const cancelled = await older.cancel();
    assert.equal(cancelled.outputs["conclusion"], "cancelled");
    const passed = await newer;
    assert.equal(passed.outputs["conclusion"], "success", passed.log);
    assert.deepEqual(
      new Map(checkRuns().map(({ head_sha: sha, conclusion }) => [sha, conclusion])),
      new Map([
        [commits.head, "cancelled"],
        [laterHead, "success"],
      ]),
    );
    for (const [{ outputs }, status] of [
      [cancelled, "Cancelled"],
      [passed, "Completed"],
    ] as const) {
      const params = { id: outputs["batch-id"] ?? "" };
      assert.equal((await service.client.call("getBatch", { params })).status, status);
    }
  },

  "a later push runs what it changes; what passed with the same bytes is reported for its commit":
    async ({ service, runner, run, checkRuns }) => {
      await writeWorkspaceModel(runner.workspace, "b.onnx", 2);
      const given = { models: "a.onnx\nb.onnx", recipe: larger, gates };
      await run(given, toBase(commits.base));
      const propose = (head: string, id: string, more = {}) => {
        const options = { event: pullRequest({ head }), environment: { GITHUB_RUN_ID: id } };
        return run({ ...given, ...more }, options);
      };
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
      const checks = checkRuns().filter(({ head_sha: sha }) => sha === laterHead);
      assert.equal(checks.length, 3);
      assert.ok(checks.some(({ name }) => name.endsWith(": a for cpu")));
      assert.ok(checks.every(({ conclusion }) => conclusion === "success"));

      // Another request, and a commit of the base branch, are run whole.
      const other = await propose(laterHead, "12", { gates: "maxSizeRegression: 0.06" });
      const pushed = await run(given, toBase(movedBase));
      for (const { log } of [other, pushed]) assert.doesNotMatch(log, /passed in an earlier run/);
    },

  "what was compared with an older commit is compared again once its base has a result": async ({
    run,
  }) => {
    const given = { gates, recipe: larger, "job-checks": "none" };
    await run(given, toBase(commits.base));
    const propose = async (id: string) => {
      const event = pullRequest({ base: movedBase });
      return (await run(given, { event, environment: { GITHUB_RUN_ID: id } })).log;
    };
    await propose("10");
    await run(given, toBase(movedBase));
    assert.doesNotMatch(await propose("11"), /passed in an earlier run/);
    assert.match(await propose("12"), /passed in an earlier run/);
  },

  "what was measured on data at an address is measured again, since it may have changed": async ({
    run,
    folder,
  }) => {
    const data = pathToFileURL(path.join(folder, "x.npz")).href;
    const recipe = `evaluation: { data: "${data}", latencyBudgetSeconds: 0 }`;
    const propose = async (id: string, value: number) => {
      const values = Array.from({ length: 64 }, (_, i) => value + i);
      await writeFloatsNpz(folder, "x", { shape: [1, 64], values });
      const options = { event: pullRequest(), environment: { GITHUB_RUN_ID: id } };
      return run({ recipe, "job-checks": "none" }, options);
    };
    const first = await propose("10", 1);
    const second = await propose("11", 2);
    for (const { outputs, log } of [first, second]) {
      assert.equal(outputs["conclusion"], "success", log);
    }
    assert.doesNotMatch(second.log, /passed in an earlier run/);
  },

  "what had no baseline is compared once there is one, when its run is repeated": async ({
    run,
  }) => {
    const given = { gates, recipe: larger };
    const propose = (attempt: string) =>
      run(given, { event: pullRequest(), environment: { GITHUB_RUN_ATTEMPT: attempt } });
    const first = await propose("1");
    assert.equal(first.outputs["conclusion"], "neutral");
    assert.match(first.summary, /Run the workflow once on the base branch/);
    await run(given, toBase(commits.base));
    assert.equal((await propose("2")).outputs["conclusion"], "success");
    const third = await propose("3");
    assert.match(third.log, /^a for cpu: passed in an earlier run/m);
    assert.deepEqual([third.outputs["conclusion"], third.outputs["jobs"]], ["success", "1"]);
  },

  "of a hundred models, those two are sent that a pull request changes": async ({
    runner,
    run,
  }) => {
    const write = (i: number, seed: number) =>
      writeWorkspaceModel(runner.workspace, `m${i}.onnx`, seed);
    for (let i = 0; i < 100; i++) await write(i, 100 + i);
    const left = { models: "m*.onnx", wait: "false", "github-token": "" };
    const first = await run(left);
    assert.equal(first.log.match(/^\[upload\] m\d+\.onnx: uploaded, /gm)?.length, 100, first.log);
    await write(17, 1017);
    await write(60, 1060);
    const options = { event: pullRequest(), environment: { GITHUB_RUN_ID: "2" } };
    const { log } = await run(left, options);
    assert.deepEqual(
      new Set(log.match(/^\[upload\] m\d+\.onnx: uploaded/gm)),
      new Set(["[upload] m17.onnx: uploaded", "[upload] m60.onnx: uploaded"]),
    );
    assert.equal(log.match(/^\[upload\] m\d+\.onnx: unchanged, /gm)?.length, 98);
  },
};

test("a pull request", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "data-"));
  t.after(() => rm(folder, { recursive: true }));
  const environment = { MOS_WORKERS: "1", MOS_ALLOWED_ROOTS: folder };
  const step = await prepareStep(t, { environment });
  for (const [name, check] of Object.entries(cases)) {
    const own = { "check-name": name };
    const named: NamedStep = {
      ...step,
      folder,
      inputs: { ...step.inputs, ...own },
      run: (inputs, options) => step.run({ ...own, ...inputs }, options),
      checkRuns: () => step.gitHub.checkRuns().filter((each) => each.name.startsWith(name)),
    };
    await t.test(name, () => check(named));
  }
});
