import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { completed, endJob, failed } from "../github-app/reported-batch.ts";
import { makeTestApp } from "../server/test-app.ts";
import { until } from "../support/until.ts";
import { prepareStep } from "./prepare-step.ts";
import { gitHubFaults } from "./support/github-faults.ts";
import { serveApp } from "./support/serve-app.ts";
import { commits, workflowEvents } from "./support/workflow-event.ts";

/** What makes results comparable with the original, though not how fast they are. */
const evaluated = { recipe: "evaluation: { latencyBudgetSeconds: 0 }" };
const pullRequest = { event: workflowEvents.pullRequest };

function writes(
  requests: readonly { readonly method: string; readonly operation: string }[],
): string[] {
  return requests.filter(({ method }) => method !== "GET").map(({ operation }) => operation);
}

test("a batch has one check run on the pull request's commit, and each job its own", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const { code, outputs, log } = await run({ ...evaluated, targets: "cpu,cpu-int8" }, pullRequest);
  assert.equal(code, 0, log);
  assert.equal(outputs["conclusion"], "success");
  const shown = gitHub
    .checkRuns()
    .map((one) => [one.name, one.head_sha, one.status, one.conclusion, one.output.title]);
  const [ofBatch, ...ofJobs] = shown;
  assert.deepEqual(ofBatch, [
    "Model compression",
    commits.head,
    "completed",
    "success",
    "2 jobs passed",
  ]);
  assert.deepEqual(
    ofJobs.map(([name, sha, status, conclusion]) => [name, sha, status, conclusion]),
    ["cpu", "cpu-int8"].map((target) => [
      `Model compression: a for ${target}`,
      commits.head,
      "completed",
      "success",
    ]),
  );
  const ofCpu = gitHub.checkRuns().find(({ name }) => name.endsWith("for cpu"));
  assert.match(
    ofCpu?.output.text ?? "",
    /<summary>End of the output<\/summary>\n.*\n\n```text\n.*\[evaluate\].*```\n\n<\/details>$/s,
  );
  // The batch's check run is made before the jobs' and completed once, after them.
  const made = writes(gitHub.requests);
  assert.equal(made[0], "checks/create");
  assert.equal(made.at(-1), "checks/update");
});

test("a gate that fails is annotated beside its line of the batch file", async (t) => {
  const { gitHub, runner, run } = await prepareStep(t);
  const batch =
    "models:\n  - a.onnx\ntargets: [cpu]\ngates:\n  minCosine: 0.5\n  maxSizeRatio: 0.01\n";
  await writeFile(path.join(runner.workspace, "batch.yaml"), batch);
  const { code, outputs, commands } = await run(
    { ...evaluated, models: "", targets: "", "batch-file": "batch.yaml" },
    pullRequest,
  );
  assert.equal(code, 1);
  assert.equal(outputs["conclusion"], "failure");
  assert.equal(outputs["gates-failed"], "1");
  const [ofBatch] = gitHub.checkRuns();
  assert.equal(ofBatch?.conclusion, "failure");
  const verdict = /^a for cpu has [\d.]+ % of the original's size; 1 % is allowed$/;
  assert.match(ofBatch.output.title ?? "", verdict);
  const [annotation, ...others] = gitHub.annotations(ofBatch.id);
  assert.deepEqual(others, []);
  assert.equal(annotation?.path, "batch.yaml");
  assert.equal(annotation.start_line, 6);
  assert.match(annotation.message ?? "", /^has [\d.]+ % of the original's size; 1 % is allowed$/);
  assert.deepEqual(
    commands.filter(({ command }) => command === "error").map(({ message }) => message),
    [ofBatch.output.title],
  );
});

test("what the service refuses of a batch file is annotated beside its lines", async (t) => {
  const { gitHub, runner, run } = await prepareStep(t);
  const batch = [
    "models:",
    "  - b=https://models.example/b.onnx",
    "  - a=https://127.0.0.1/a.onnx",
    "targets: [cpu]",
    "recipe:",
    "  scheme: int8-static",
    "  dialect: tensorrt",
    "  calibration: { generated: true }",
    "gates: { maxLatencyRatio: 0.8 }",
  ];
  await writeFile(path.join(runner.workspace, "batch.yaml"), batch.join("\n"));
  const inputs = { models: "", targets: "", recipe: "", "batch-file": "batch.yaml" };
  const { code, commands } = await run(inputs, pullRequest);
  assert.equal(code, 1);
  const [check] = gitHub.checkRuns();
  const annotated = gitHub.annotations(check?.id ?? 0);
  const [gate = "", source = ""] = annotated.map(
    ({ path: file, start_line: line, message }) => `${file}:${line}: ${message}`,
  );
  assert.equal(annotated.length, 2);
  assert.match(gate, /^batch\.yaml:9: .*\/gates\/maxLatencyRatio: .* no result .* is timed/);
  assert.match(source, /^batch\.yaml:3: .*\/models\/1\/source: Host "127\.0\.0\.1" is not on/);
  const [failure] = commands.filter(({ command }) => command === "error");
  assert.equal(failure?.message.split("\n").length, 3);
});

test("without leave to write check runs the step says so once, and annotates by commands", async (t) => {
  const { gitHub, runner, run } = await prepareStep(t, {
    permissions: { checks: "read", issues: "none", pull_requests: "none" },
  });
  await writeFile(path.join(runner.workspace, "broken.onnx"), "no model");
  const { code, summary, commands } = await run({ models: "*.onnx", comment: "true" }, pullRequest);
  assert.equal(code, 1);
  assert.deepEqual(gitHub.checkRuns(), []);
  const warnings = commands
    .filter(({ command }) => command === "warning")
    .map(({ message }) => message);
  assert.equal(warnings.filter((text) => text.includes("permissions: checks: write")).length, 1);
  assert.equal(
    warnings.filter((text) => text.includes("permissions: pull-requests: write")).length,
    1,
  );
  const [annotation] = commands.filter(({ properties }) => properties["file"] !== undefined);
  assert.deepEqual(annotation?.properties, {
    title: "broken for cpu failed",
    file: "broken.onnx",
    line: "1",
  });
  assert.match(summary, /❌ `broken` for `cpu` failed: `/);
});

test("a check run whose answer was lost is not made twice", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  gitHub.fail({ operation: "checks/create", fault: gitHubFaults.badGateway, isDone: true });
  gitHub.fail({ operation: "checks/update", fault: "reset" });
  const { code } = await run({ "job-checks": "none" });
  assert.equal(code, 0);
  assert.deepEqual(
    gitHub.checkRuns().map(({ name, conclusion }) => [name, conclusion]),
    [["Model compression", "success"]],
  );
});

test("a gate that fails is annotated once beside its line, though an answer is lost", async (t) => {
  const { gitHub, runner, run } = await prepareStep(t);
  await writeFile(
    path.join(runner.workspace, "batch.yaml"),
    "models: [a.onnx]\ntargets: [cpu]\ngates:\n  maxSizeRatio: 0.01\n",
  );
  gitHub.fail({ operation: "checks/update", fault: gitHubFaults.badGateway, isDone: true });
  const inputs = { models: "", targets: "", "batch-file": "batch.yaml", "job-checks": "none" };
  await run(inputs, pullRequest);
  const [check] = gitHub.checkRuns();
  assert.equal(check?.conclusion, "failure");
  assert.equal(gitHub.annotations(check.id).length, 1);
  // A job that is slow has its progress written, too.
  const [first, ...later] = writes(gitHub.requests);
  assert.equal(first, "checks/create");
  assert.ok(later.length >= 2 && later.every((write) => write === "checks/update"));
});

test("the step goes on behind GitHub's rate limits", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  gitHub.fail({ operation: "checks/create", fault: gitHubFaults.secondaryLimit(1) });
  gitHub.fail({ operation: "checks/update", fault: gitHubFaults.primaryLimit(1) });
  const { code, log } = await run({ "job-checks": "none" });
  assert.equal(code, 0, log);
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion }) => conclusion),
    ["success"],
  );
});

test("a limit for the hour leaves no check run in progress", async (t) => {
  const { gitHub, runner, inputs, run } = await prepareStep(t);
  const hourLimit = gitHubFaults.primaryLimit(3_600);
  const step = await runner.start(inputs);
  await until("the batch has its check run", () => gitHub.checkRuns().length === 1);
  gitHub.fail({ operation: "checks/create", fault: hourLimit });
  gitHub.fail({ operation: "checks/update", fault: hourLimit });
  const { state, log } = await step.ended;
  assert.doesNotMatch(log, /permissions: checks: write/);
  const post = await runner.startPost(state, inputs);
  await post.ended;
  gitHub.fail({ operation: "checks/create", fault: hourLimit });
  await run({ "job-checks": "none" });
  const written = gitHub.checkRuns().map(({ name, conclusion, output }) => {
    return [name, conclusion, output.title];
  });
  const passed = ["Model compression", "success", "1 job passed"];
  assert.deepEqual(written, [passed, passed]);
});

test("a step that finds no room for its report leaves its verdict in the check run", async (t) => {
  const { gitHub, runner, inputs, run } = await prepareStep(t);
  const environment = { RUNNER_TEMP: "/proc/full" };
  const { code, state, commands } = await run({ "job-checks": "none" }, { environment });
  assert.equal(code, 1);
  assert.match(commands.at(-1)?.message ?? "", /ENOENT/);
  await (
    await runner.startPost(state, inputs)
  ).ended;
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion, output }) => [conclusion, output.title]),
    [["success", "1 job passed"]],
  );
});

test("beyond twelve jobs only those that failed have check runs of their own", async (t) => {
  const service = await makeTestApp(t);
  const { gitHub, runner, inputs } = await prepareStep(t);
  const names = [...Array.from({ length: 12 }, (_, i) => `m${i}`), "broken"];
  const step = await runner.start({
    ...inputs,
    "service-url": await serveApp(t, service),
    token: service.admin,
    models: names.map((name) => `${name}=https://models.example/${name}.onnx`).join("\n"),
    "dry-run": "true",
  });
  await step.untilLog(/^Batch batch-\w+: 13 jobs$/m);
  for (const [i, id] of service.submitted.entries()) {
    await endJob(service, id, names[i] === "broken" ? failed : completed);
  }
  const { outputs } = await step.ended;
  assert.equal(outputs["jobs"], "13");
  assert.deepEqual(
    gitHub.checkRuns().map(({ name, conclusion }) => [name, conclusion]),
    [
      ["Model compression (dry run)", "failure"],
      ["Model compression (dry run): broken for cpu", "failure"],
    ],
  );
});

test("each leg of a matrix has a check run of its own name, and a dry run another", async (t) => {
  const { gitHub, runner, run } = await prepareStep(t);
  await writeFile(path.join(runner.workspace, "plan.yaml"), "dryRun: true\n");
  const plan = { "batch-file": "plan.yaml", "job-checks": "none" };
  await run({ ...plan, matrix: '{"target": "cpu", "bits": 8}' });
  await run({ ...plan, matrix: '{"target": "cpu", "bits": 4}', "check-name": "four" });
  const recipe = `scheme: int8-weight\n${"# A comment\n".repeat(20)}`;
  const { outputs } = await run({ ...plan, matrix: JSON.stringify({ recipe }) });
  assert.equal(outputs["conclusion"], "success");
  const [first, second, third] = gitHub.checkRuns().map(({ name }) => name);
  assert.deepEqual([first, second], ["Model compression (cpu, 8) (dry run)", "four (dry run)"]);
  assert.match(
    third ?? "",
    /^Model compression \(scheme: int8-weight # A comment # .*… \w{8} \(dry run\)$/,
  );
});

test("the comment on a pull request is written anew by later runs, and nobody else's is touched", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const inputs = { comment: "true", "job-checks": "none", "dry-run": "true" };
  gitHub.fail({ operation: "issues/create-comment", fault: gitHubFaults.invalid });
  const { commands } = await run(inputs, pullRequest);
  const [warning] = commands.filter(({ command }) => command === "warning");
  assert.match(warning?.message ?? "", /^No comment: Validation Failed(?!.*permissions)/);
  gitHub.fail({ operation: "issues/create-comment", fault: gitHubFaults.badGateway, isDone: true });
  await run(inputs, pullRequest);
  const [first, ...copies] = gitHub.comments(7);
  assert.deepEqual(copies, []);
  assert.match(
    first?.body ?? "",
    /^<!-- model-optimization \w+ \d+ -->\n### `Model compression`\n\n\*\*1 job planned\*\* · c0ffee2 ·/,
  );
  const later = { ...pullRequest, environment: { GITHUB_RUN_ID: "99999999999" } };
  await run({ ...inputs, models: "b=a.onnx" }, later);
  const [second, ...others] = gitHub.comments(7);
  assert.deepEqual(others, []);
  assert.match(second?.body ?? "", /\| `b` \|/);
  // The run of an older commit may end behind that of a newer one.
  await run(inputs, pullRequest);
  assert.deepEqual(gitHub.comments(7), [second]);
  // Another token has a comment of its own.
  const byMember = { ...inputs, "github-token": gitHub.memberToken };
  const { commands: refusals } = await run(byMember, later);
  const [refusal] = refusals.filter(({ command }) => command === "warning");
  assert.match(refusal?.message ?? "", /from no person .*workflow's own token or a GitHub App's/);
  await run({ ...byMember, models: "b=a.onnx" }, later);
  const [untouched, memberComment, ...more] = gitHub.comments(7);
  assert.deepEqual([untouched, more], [second, []]);
  assert.equal(memberComment?.user?.login, "octocat");
  assert.match(memberComment.body ?? "", /\| `b` \|/);
});
