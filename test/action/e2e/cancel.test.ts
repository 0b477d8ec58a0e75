import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile } from "node:fs/promises";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import type { Client } from "../../../src/client/create-client.ts";
import type { Job } from "../../../src/contract/jobs/job.ts";
import { completed, endJob } from "../../github-app/reported-batch.ts";
import { makeTestApp } from "../../server/test-app.ts";
import { actMissing } from "../../support/cluster/cluster-missing.ts";
import { realModel } from "../../support/real-models.ts";
import { type RunningService, startRunningService } from "../../support/running-service.ts";
import { until } from "../../support/until.ts";
import { startGitHub } from "../support/github-double.ts";
import { gitHubFaults } from "../support/github-faults.ts";
import { prepareRunner, type Runner, type StepEnd } from "../support/runner.ts";
import { serveApp } from "../support/serve-app.ts";
import { startServiceRelay } from "../support/service-relay.ts";
import { workflowEvents } from "../support/workflow-event.ts";
import { startWorkflow, workflowFile } from "./run-workflow.ts";

const exec = promisify(execFile);
const isAtWork = /^\[evaluate\]/m;
/** Enough to do for a job to be at work when a step is killed at last. */
const evaluation = "evaluation: { samples: 1024, latencyBudgetSeconds: 0 }";
const batchFile = "models: [models/*.onnx]\ntargets: [cpu, cpu-int8]\n";

async function prepare(t: TestContext) {
  const service = await startRunningService(t, { environment: { MOS_WORKERS: "1" } });
  const gitHub = await startGitHub(t);
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  await copyFile(realModel("ocr-recognition"), path.join(runner.workspace, "recognition.onnx"));
  const inputs = {
    "service-url": service.baseUrl,
    token: service.token,
    "github-token": gitHub.token,
    models: "*.onnx",
    targets: "cpu, cpu-int8",
    recipe: `{ ${evaluation} }`,
  };
  return { service, gitHub, runner, inputs };
}

/** The only batch's jobs, when they have ended. */
async function endedJobs({ client }: { readonly client: Client }): Promise<Job[]> {
  const { jobs } = await client.call("listJobs", { query: {} });
  for (const { id } of jobs) for await (const _ of client.followLogs(id)) continue;
  return Promise.all(jobs.map(async ({ id }) => client.call("getJob", { params: { id } })));
}

/** Runs post behind a step that was killed. */
async function cleanUp(
  runner: Runner,
  { state }: Pick<StepEnd, "state">,
  inputs: Parameters<Runner["startPost"]>[1],
): Promise<void> {
  const post = await (await runner.startPost(state, inputs)).ended;
  assert.equal(post.code, 0, post.log);
}

/** Processes that the service started and that are still there. */
async function listWorkers({ process: { pid } }: RunningService): Promise<string[]> {
  const { stdout } = await exec("pgrep", ["-P", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout.split("\n").filter((line) => line !== "");
}

test("a cancelled workflow cancels its batch before its runner sends another signal", async (t) => {
  const { service, gitHub, runner, inputs } = await prepare(t);
  const step = await runner.start(inputs);
  await step.untilLog(isAtWork);
  assert.equal((await listWorkers(service)).length, 1);
  const end = await step.cancel();
  assert.deepEqual(end.signals, ["SIGINT"], end.log);
  assert.equal(end.outputs["conclusion"], "cancelled");
  assert.deepEqual(
    (await endedJobs(service)).map(({ status }) => status),
    ["Cancelled", "Cancelled"],
  );
  assert.deepEqual(await listWorkers(service), []);
  assert.deepEqual(
    gitHub.checkRuns().map(({ status, conclusion }) => [status, conclusion]),
    [["completed", "cancelled"]],
  );
  const written = gitHub.requests.length;
  const post = await (await runner.startPost(end.state, inputs)).ended;
  assert.deepEqual([post.code, post.visibleLines, gitHub.requests.length], [0, [""], written]);
});

test("a step that hangs is cleaned up behind by post", async (t) => {
  const { service, gitHub, runner, inputs } = await prepare(t);
  const step = await runner.start(inputs);
  await step.untilLog(isAtWork);
  step.kill("SIGSTOP");
  // The job would take all processors for as long as the runner waits.
  const workers = await listWorkers(service);
  const signalWorkers = (signal: NodeJS.Signals) =>
    workers.forEach((pid) => process.kill(-Number(pid), signal));
  signalWorkers("SIGSTOP");
  const end = await step.cancel();
  signalWorkers("SIGCONT");
  assert.deepEqual([end.signal, end.signals], ["SIGKILL", ["SIGINT", "SIGTERM", "SIGKILL"]]);
  const { batches } = await service.client.call("listBatches", { query: {} });
  assert.notEqual(batches[0]?.status, "Cancelled");
  await cleanUp(runner, end, inputs);
  assert.deepEqual(
    (await endedJobs(service)).map(({ status }) => status),
    ["Cancelled", "Cancelled"],
  );
  assert.deepEqual(await listWorkers(service), []);
  assert.deepEqual(
    gitHub.checkRuns().map(({ status, conclusion }) => [status, conclusion]),
    [["completed", "cancelled"]],
  );
});

test("a batch whose step was killed before it heard of it is cancelled too", async (t) => {
  const { service, runner, inputs } = await prepare(t);
  const relay = await startServiceRelay(t, service.baseUrl, {
    isLost: (method, url) => method === "POST" && url === "/v1/batches",
  });
  const step = await runner.start({ ...inputs, "service-url": relay.baseUrl });
  await relay.lost;
  step.kill("SIGKILL");
  await cleanUp(runner, await step.ended, inputs);
  assert.deepEqual(
    (await endedJobs(service)).map(({ status }) => status),
    ["Cancelled", "Cancelled"],
  );
});

/** A service whose jobs wait for the test, and a step of a job of it. */
async function prepareWaitingJobs(t: TestContext) {
  const service = await makeTestApp(t);
  const gitHub = await startGitHub(t);
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  const inputs = {
    "service-url": await serveApp(t, service),
    token: service.admin,
    "github-token": gitHub.token,
    models: "one=https://models.example/one.onnx",
    targets: "cpu",
    "job-checks": "none",
  };
  return { service, gitHub, runner, inputs };
}

test("a step that was killed has no batch cancelled but its own, though another has its names", async (t) => {
  const { service, runner, inputs } = await prepareWaitingJobs(t);
  const one = await runner.start(inputs);
  await one.untilLog(/^Batch batch-/m);
  // As where one workflow calls another twice: GitHub gives both the same names.
  const ofOther = { ...inputs, models: "other=https://models.example/other.onnx" };
  const other = await runner.start(ofOther);
  await other.untilLog(/^Batch batch-/m);
  other.kill("SIGKILL");
  await cleanUp(runner, await other.ended, ofOther);
  const [first = "", second = ""] = service.submitted;
  const jobs = [first, second].map((id) => service.records.jobs.find("default", id));
  assert.deepEqual(
    (await Promise.all(jobs)).map((job) => job?.status),
    ["Pending", "Cancelled"],
  );
  await endJob(service, first, completed);
  const { outputs } = await one.ended;
  assert.equal(outputs["conclusion"], "success");
});

test("a cancelled step reports, though GitHub lets its check run wait", async (t) => {
  const { gitHub, runner, inputs } = await prepareWaitingJobs(t);
  gitHub.fail({ operation: "checks/create", fault: gitHubFaults.secondaryLimit(100) });
  const step = await runner.start(inputs);
  await step.untilLog(/secondary rate limit is reached; continuing in 100 s/);
  await step.untilLog(/^Batch batch-/m);
  const { signals, outputs, summary } = await step.cancel();
  assert.deepEqual([signals, outputs["conclusion"]], [["SIGINT"], "cancelled"]);
  assert.match(summary, /Cancelled with its workflow run, 0 of 1 job ended/);
});

test("a step that is killed while it uploads leaves no check run in progress", async (t) => {
  const { service, gitHub, runner, inputs } = await prepare(t);
  const relay = await startServiceRelay(t, service.baseUrl, {
    isLost: (method, url) => method === "PUT" && url.startsWith("/v1/models/"),
  });
  const step = await runner.start({ ...inputs, "service-url": relay.baseUrl });
  await until("the step has a check run", () => gitHub.checkRuns().length === 1);
  await relay.lost;
  step.kill("SIGKILL");
  await cleanUp(runner, await step.ended, inputs);
  assert.deepEqual(
    gitHub.checkRuns().map(({ status, conclusion }) => [status, conclusion]),
    [["completed", "cancelled"]],
  );
});

test("a step that a runner kills at once leaves no job behind", { skip: actMissing }, async (t) => {
  const { service, gitHub } = await prepare(t);
  const workflow = await startWorkflow(t, {
    workflow: { copyFrom: workflowFile("compression.yml") },
    event: workflowEvents.pullRequest,
    files: {
      "compression.yaml": { text: `${batchFile}recipe: { ${evaluation} }\n` },
      "models/recognition.onnx": { copyFrom: realModel("ocr-recognition") },
    },
    environment: gitHub.environment,
    secrets: { GITHUB_TOKEN: gitHub.token, MOS_TOKEN: service.token },
    variables: { MOS_URL: service.baseUrl },
  });
  await workflow.untilLog(isAtWork);
  workflow.cancel();
  await workflow.ended;
  assert.deepEqual(
    (await endedJobs(service)).map(({ status }) => status),
    ["Cancelled", "Cancelled"],
  );
  assert.deepEqual(await listWorkers(service), []);
});
