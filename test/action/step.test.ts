import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { completed, endJob } from "../github-app/reported-batch.ts";
import { makeTestApp } from "../server/test-app.ts";
import { prepareStep } from "./prepare-step.ts";
import { prepareRunner } from "./support/runner.ts";
import { serveApp } from "./support/serve-app.ts";
import { startServiceRelay } from "./support/service-relay.ts";
import { workflowEvents } from "./support/workflow-event.ts";
import { writeWorkspaceModel } from "./workspace-models.ts";

test("a step compresses the workspace's models and reports what came of it", async (t) => {
  const { runner, service, run } = await prepareStep(t);
  await writeWorkspaceModel(runner.workspace, "b.onnx", 2);
  const inputs = {
    models: "*.onnx",
    targets: "cpu\ncpu-int8",
    gates: "maxSizeRatio: 0.9",
    download: "true",
  };
  const { code, visibleLines, outputs, summary } = await run(inputs);
  assert.equal(code, 0);
  const { conclusion, jobs, completed, failed } = outputs;
  assert.deepEqual([conclusion, jobs, completed, failed], ["success", "4", "4", "0"]);
  assert.match(summary, /^\| `b` \| `cpu-int8` \| ✅ passed \|.*\| 1 passed \|$/m);
  assert.deepEqual(
    visibleLines.filter((line) => / for cpu(-int8)?$/.test(line)),
    ["a for cpu", "a for cpu-int8", "b for cpu", "b for cpu-int8"],
  );
  assert.ok(!visibleLines.some((line) => line.includes(service.token)));
  const report = JSON.parse(await readFile(outputs["report-json"] ?? "", "utf8"));
  assert.deepEqual([report.conclusion, report.jobs.length], ["success", 4]);
  assert.equal(await readFile(outputs["report-markdown"] ?? "", "utf8"), summary);
  const artifacts = outputs["artifacts"] ?? "";
  assert.deepEqual((await readdir(artifacts)).toSorted(), [
    "a-cpu",
    "a-cpu-int8",
    "b-cpu",
    "b-cpu-int8",
  ]);
  assert.ok((await readdir(path.join(artifacts, "a-cpu"))).includes("model.onnx"));
});

test("the log says what keeps jobs from being worked on", async (t) => {
  const service = await makeTestApp(t);
  const { runner, inputs } = await prepareStep(t);
  const step = await runner.start({
    ...inputs,
    "service-url": await serveApp(t, service),
    token: service.admin,
    models: "far=https://models.example/far.onnx",
    "dry-run": "true",
  });
  await step.untilLog(/^Batch batch-\w+: 1 job$/m);
  const [id = ""] = service.submitted;
  const message = 'Waiting for the quota "gpus"';
  await service.records.cluster.recordEvents(id, [
    { type: "waiting", reason: "pod_refused", message },
  ]);
  await step.untilLog(/^\[batch\] far for cpu waits: Waiting for the quota "gpus"$/m);
  await endJob(service, id, completed);
  assert.equal((await step.ended).code, 0);
});

test("a repeated run sends no model again, and has results that were deleted made again", async (t) => {
  const { service, run } = await prepareStep(t);
  const first = await run();
  assert.match(first.log, /^\[upload\] a\.onnx: uploaded, /m);
  const file = path.join(service.directory, "service.sqlite");
  const records = new DatabaseSync(file, { timeout: 60_000 });
  records.exec("update jobs set document = json_set(document, '$.artifacts', json('[]'))");
  records.close();
  const environment = { GITHUB_RUN_ATTEMPT: "2" };
  const second = await run({ download: "true" }, { environment });
  assert.match(second.log, /^\[upload\] a\.onnx: unchanged, /m);
  const files = await readdir(path.join(second.outputs["artifacts"] ?? "", "a-cpu"));
  assert.ok(files.includes("model.onnx"));
});

for (const [failOn, conclusion, code] of [
  ["gates", "failure", 1],
  ["jobs", "neutral", 0],
] as const) {
  test(`a gate that fails gives ${conclusion} where the step fails on ${failOn}`, async (t) => {
    const { run } = await prepareStep(t);
    const end = await run({ gates: "maxSizeRatio: 0.01", "fail-on": failOn });
    assert.deepEqual([end.outputs["conclusion"], end.code], [conclusion, code]);
    assert.equal(/ · This check does not block merging\.$/m.test(end.summary), code === 0);
  });
}

test("a repeated run submits only the jobs that did not pass", async (t) => {
  const { service, runner, run } = await prepareStep(t);
  await writeFile(path.join(runner.workspace, "broken.onnx"), "no model");
  const inputs = { models: "*.onnx", targets: "cpu,cpu-int8" };
  const first = await run(inputs);
  assert.equal(first.outputs["failed"], "2");
  assert.match(first.log, /^broken for cpu failed: The file is not an ONNX model/m);
  const { code, outputs, summary, log } = await run(inputs, {
    environment: { GITHUB_RUN_ATTEMPT: "2" },
  });
  assert.equal(code, 1);
  assert.deepEqual([outputs["jobs"], outputs["completed"], outputs["failed"]], ["4", "2", "2"]);
  assert.match(log, /^a for cpu-int8: passed in an earlier run, with the same bytes$/m);
  assert.match(summary, /^\| `a` \| `cpu` \| ✅ passed /m);
  const batch = await service.client.call("getBatch", {
    params: { id: outputs["batch-id"] ?? "" },
  });
  assert.deepEqual(
    batch.jobs.map(({ model, target }) => [model, target]),
    [
      ["broken", "cpu"],
      ["broken", "cpu-int8"],
    ],
  );
});

test("a request that is sent again, as its answer was lost, makes no second batch", async (t) => {
  const { service, run } = await prepareStep(t);
  let sent = 0;
  const relay = await startServiceRelay(t, service.baseUrl, {
    breaksAnswerTo: (method, url) => method === "POST" && url === "/v1/batches" && ++sent === 1,
  });
  const { outputs } = await run({ "service-url": relay.baseUrl });
  const { batches } = await service.client.call("listBatches", {});
  assert.deepEqual(
    batches.map(({ id }) => id),
    [outputs["batch-id"]],
  );
});

test("a step waits for a service that is away while it submits, and when it downloads", async (t) => {
  const { service, run } = await prepareStep(t);
  const asked = { submission: 0, download: 0 };
  const relay = await startServiceRelay(t, service.baseUrl, {
    // Longer than the client tries by itself.
    breaksAnswerTo: (method, url) => {
      if (method === "POST" && url === "/v1/batches") return ++asked.submission <= 5;
      return url.endsWith("/artifacts/model.onnx") && ++asked.download <= 5;
    },
  });
  const { code, outputs, log } = await run({ "service-url": relay.baseUrl, download: "true" });
  assert.equal(code, 0, log);
  assert.deepEqual(asked, { submission: 6, download: 6 });
  assert.equal((await service.client.call("listBatches", {})).batches.length, 1);
  const files = await readdir(path.join(outputs["artifacts"] ?? "", "a-cpu"));
  assert.ok(files.includes("model.onnx"));
});

test("a dry run reports sizes and compresses nothing", async (t) => {
  const { run } = await prepareStep(t);
  const { code, summary } = await run({ "dry-run": "true", gates: "maxSizeRatio: 0.01" });
  assert.equal(code, 0);
  // Nothing is held to the gates of a plan, which therefore passes none.
  assert.match(summary, /\*\*1 job planned\*\*/);
  assert.match(summary, /^\| `a` \| `cpu` \| 📋 planned \|/m);
  assert.match(summary, / kB \(\d\d %, planned\)/);
});

for (const [name, event, missing, checks, advice] of [
  [
    "from a fork",
    workflowEvents.pullRequestOfFork,
    // GitHub leaves variables such as `vars.MOS_URL` empty there.
    { token: "", "service-url": "", targets: "" },
    [],
    /from forks .* run the workflow on a branch/,
  ],
  [
    "of Dependabot",
    workflowEvents.pullRequestOfDependabot,
    { token: "" },
    ["neutral"],
    /Dependabot starts .* to the repository's Dependabot secrets/,
  ],
] as const) {
  test(`without a token for a pull request ${name} nothing is done, and nothing fails`, async (t) => {
    const { service, gitHub, run } = await prepareStep(t);
    const { code, outputs, summary, commands } = await run(missing, { event });
    const concluded = gitHub.checkRuns().map(({ conclusion }) => conclusion);
    assert.deepEqual(concluded, checks);
    assert.equal(code, 0);
    assert.equal(outputs["conclusion"], "neutral");
    assert.match(summary, /Nothing was compressed/);
    assert.match(summary, advice);
    assert.doesNotMatch(summary, /block merging/);
    assert.ok(
      commands.some(
        ({ command, message }) =>
          command === "notice" && message.includes("Nothing was compressed"),
      ),
    );
    assert.deepEqual((await service.client.call("listBatches", {})).batches, []);
  });
}

test("a model's output gives no commands to the runner, and the step's own are taken between its lines", async (t) => {
  const program = path.join(import.meta.dirname, "hostile-output-process.ts");
  const step = await (await prepareRunner(t, { program })).start({});
  const { commands, visibleLines } = await step.ended;
  assert.deepEqual(
    commands.filter(({ command }) => command !== "stop-commands").map(({ command }) => command),
    ["group", "warning", "endgroup"],
  );
  assert.ok(visibleLines.includes("::error file=a.ts::Planted"));
  assert.ok(visibleLines.includes("Progress ::set-env name=PATH::/tmp"));
  assert.match(visibleLines.at(-1) ?? "", /^\[service\] Not reachable, .* Busy ::error file=a\.ts/);
});
