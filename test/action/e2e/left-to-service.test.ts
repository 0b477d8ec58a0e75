import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import type { Batch } from "../../../src/contract/batches/batch.ts";
import {
  appId,
  gitHubAppFileContent,
  startGitHubWithApp,
  untilCheckRun,
} from "../../github-app/reported-batch.ts";
import { findFreePort } from "../../support/find-free-port.ts";
import { realModel } from "../../support/real-models.ts";
import { type RunningService, startRunningService } from "../../support/running-service.ts";
import { node, tensorInfo, floatInitializer, writeTinyModel } from "../../support/tiny-model.ts";
import type { GitHub } from "../support/github-double.ts";
import { prepareRunner } from "../support/runner.ts";
import { commits, workflowEvents } from "../support/workflow-event.ts";

const name = "Model compression";
const webhookSecret = "s3cret";
const batchFile = `models:
  - orientation.onnx
  - broken.onnx
  - small.onnx
targets: [cpu]
recipe:
  evaluation: { samples: 2, latencyBudgetSeconds: 2 }
gates:
  maxSizeRatio: 0.43
`;

const expectedAnnotations = [
  ["batch.yaml", 3, "failure", "broken for cpu failed"],
  ["batch.yaml", 9, "failure", "small for cpu: a gate failed"],
];

function listAnnotations(gitHub: GitHub, checkRun: number) {
  const annotations = gitHub.annotations(checkRun);
  return annotations.map(({ path: file, start_line: line, annotation_level: level, title }) => [
    file,
    line,
    level,
    title,
  ]);
}

/** A service with the settings of a GitHub App, at a GitHub where the workflow's own token may write nothing. */
async function prepare(t: TestContext) {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  gitHub.permissions.checks = "none";
  const folder = await mkdtemp(path.join(tmpdir(), "app-"));
  t.after(() => rm(folder, { recursive: true }));
  const appFile = path.join(folder, "github-app.yaml");
  await writeFile(appFile, gitHubAppFileContent(credentials, webhookSecret));
  const environment = {
    MOS_WORKERS: "1",
    MOS_PORT: String(await findFreePort()),
    MOS_GITHUB_APP_FILE: appFile,
    MOS_PUBLIC_URL: "https://mos.example",
  };
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  await copyFile(realModel("ocr-orientation"), path.join(runner.workspace, "orientation.onnx"));
  await writeFile(path.join(runner.workspace, "broken.onnx"), "no model");
  await writeSmallModel(path.join(runner.workspace, "small.onnx"));
  await writeFile(path.join(runner.workspace, "batch.yaml"), batchFile);
  return { gitHub, runner, environment };
}

/** A model that is not halved, since it is little more than names. */
async function writeSmallModel(file: string): Promise<void> {
  await writeTinyModel(file, {
    input: [tensorInfo("x", ["batch", 16])],
    output: [tensorInfo("y", ["batch", 16])],
    initializer: [floatInitializer("w", [16, 16], (i) => i)],
    node: [node("MatMul", ["x", "w"], ["y"])],
  });
}

/** Somebody presses Re-run, and GitHub notifies the service. */
async function pressRerun(
  { baseUrl }: RunningService,
  checkRun: number,
  { id, secret = webhookSecret }: Delivery = {},
) {
  const body = JSON.stringify({
    action: "requested_action",
    requested_action: { identifier: "rerun" },
    check_run: { id: checkRun, app: { id: appId } },
    sender: { login: "octocat" },
  });
  const { status } = await fetch(new URL("/github/webhook", baseUrl), {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      "x-github-event": "check_run",
      "x-github-delivery": id ?? randomUUID(),
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    },
  });
  return status;
}

/** The newest first. */
async function listBatches({ client }: RunningService): Promise<Batch[]> {
  const { batches } = await client.call("listBatches", {});
  return Promise.all(batches.map(async ({ id }) => client.call("getBatch", { params: { id } })));
}

interface Delivery {
  readonly id?: string;
  readonly secret?: string;
}

test("what a step leaves to the service is reported to its end, through a crash, and run again when asked for", async (t) => {
  const { gitHub, runner, environment } = await prepare(t);
  const first = await startRunningService(t, { environment });
  const inputs = {
    "service-url": first.baseUrl,
    token: first.token,
    "github-token": gitHub.token,
    "batch-file": "./batch.yaml",
    wait: "false",
  };
  const stepOptions = { event: workflowEvents.pullRequest };
  const step = await (await runner.start(inputs, stepOptions)).ended;
  assert.deepEqual([step.code, step.outputs["conclusion"]], [0, "pending"], step.log);
  const id = step.outputs["batch-id"] ?? "";
  const submitted = await first.client.call("getBatch", { params: { id } });
  assert.equal(submitted.jobs.filter(({ status }) => status === "Completed").length, 0);
  const post = await (await runner.startPost(step.state, inputs, stepOptions)).ended;
  assert.equal(post.code, 0, post.log);

  first.process.kill("SIGKILL");
  await once(first.process, "exit");
  const service = await startRunningService(t, { from: first, environment });
  const ended = await untilCheckRun(gitHub, name, "failure");
  assert.equal(ended.output.title, "1 of 3 jobs failed, 1 failed a gate");
  assert.equal(ended.details_url, `https://mos.example/batches/${id}`);
  assert.deepEqual(
    gitHub.checkRuns().map((run) => [run.name, run.conclusion, run.head_sha, run.app?.id]),
    [
      [name, "failure", commits.head, appId],
      [`${name}: orientation for cpu`, "success", commits.head, appId],
      [`${name}: broken for cpu`, "failure", commits.head, appId],
      [`${name}: small for cpu`, "failure", commits.head, appId],
    ],
  );

  assert.deepEqual(listAnnotations(gitHub, ended.id), expectedAnnotations);

  assert.equal(await pressRerun(service, ended.id, { secret: "guessed" }), 401);
  assert.equal((await listBatches(service)).length, 1);
  const delivery = randomUUID();
  assert.equal(await pressRerun(service, ended.id, { id: delivery }), 204);
  assert.equal(await pressRerun(service, ended.id, { id: delivery }), 204);
  const [again, ...others] = await listBatches(service);
  assert.deepEqual(
    [again?.jobs.map(({ model }) => model), others.map((batch) => batch.id)],
    [["broken", "small"], [id]],
  );
  const begun = await untilCheckRun(gitHub, name, null);
  const repeated = await untilCheckRun(gitHub, name, "failure");
  assert.deepEqual([repeated.id, repeated.output.title], [begun.id, ended.output.title]);
  assert.deepEqual(listAnnotations(gitHub, repeated.id), expectedAnnotations);
  assert.equal(gitHub.checkRuns().length, 4 + 3);
});

test("a step that leaves its check runs to a service without a GitHub App fails and says why", async (t) => {
  const { gitHub, runner } = await prepare(t);
  const service = await startRunningService(t);
  const step = await runner.start({
    "service-url": service.baseUrl,
    token: service.token,
    "github-token": gitHub.token,
    "batch-file": "batch.yaml",
    wait: "false",
  });
  const { code, log } = await step.ended;
  assert.equal(code, 1, log);
  assert.match(log, /::error::.*this service has no GitHub App in its settings/);
  assert.deepEqual(await listBatches(service), []);
});
