import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { actMissing } from "../../support/cluster/cluster-missing.ts";
import { type RealModelName, realModel } from "../../support/real-models.ts";
import { type RunningService, startRunningService } from "../../support/running-service.ts";
import { type GitHub, startGitHub } from "../support/github-double.ts";
import { commits, workflowEvents } from "../support/workflow-event.ts";
import { runWorkflow, workflowFile } from "./run-workflow.ts";

const models = `suite: speech
models:
  - name: orientation
    file: models/orientation.onnx
  - name: voice
    file: models/voice.onnx
targets: [cpu, cpu-int8]
recipe:
  evaluation: { samples: 2, latencyBudgetSeconds: 0 }
gates:
  maxSizeRatio: 0.9
`;
/** Against the base branch, too. */
const comparedModels = `${models}  maxSizeRegression: 0.05\n`;

interface Change {
  readonly batchFile: string;
  readonly event: keyof typeof workflowEvents;
  readonly environment?: Readonly<Record<string, string>>;
  /** What `models/voice.onnx` is. */
  readonly voice: RealModelName;
}

/** Runs a workflow on a state of the repository. */
function runOn(
  t: TestContext,
  { service, gitHub }: { service: RunningService; gitHub: GitHub },
  change: Change,
) {
  return runWorkflow(t, {
    workflow: { copyFrom: workflowFile("compression.yml") },
    event: workflowEvents[change.event],
    files: {
      "compression.yaml": { text: change.batchFile },
      "models/orientation.onnx": { copyFrom: realModel("ocr-orientation") },
      "models/voice.onnx": { copyFrom: realModel(change.voice) },
    },
    environment: { ...gitHub.environment, ...change.environment },
    secrets: { GITHUB_TOKEN: gitHub.token, MOS_TOKEN: service.token },
    variables: { MOS_URL: service.baseUrl },
  });
}

const pairs = [
  "orientation for cpu",
  "orientation for cpu-int8",
  "voice for cpu",
  "voice for cpu-int8",
];

test(
  "a pull request's models are compressed, and it shows what came of it",
  { skip: actMissing },
  async (t) => {
    const [service, gitHub] = [await startRunningService(t), await startGitHub(t)];
    const { succeeded, steps, summary, log } = await runOn(
      t,
      { service, gitHub },
      { batchFile: models, event: "pullRequest", voice: "voice-v5" },
    );
    assert.ok(succeeded, log);

    const { conclusion, jobs, completed, failed } = steps["compression"]?.outputs ?? {};
    assert.deepEqual([conclusion, jobs, completed, failed], ["success", "4", "4", "0"]);
    assert.deepEqual(steps["after"]?.outputs, {
      conclusion: "success",
      artifacts: "orientation-cpu orientation-cpu-int8 voice-cpu voice-cpu-int8 ",
    });
    assert.match(summary, /4 jobs passed/);
    assert.match(steps["compression"]?.log ?? "", /voice.onnx: uploaded/);

    const [batchCheck, ...jobChecks] = gitHub.checkRuns();
    assert.deepEqual([batchCheck?.name, batchCheck?.conclusion], ["Model compression", "success"]);
    assert.deepEqual(
      jobChecks.map(({ name, conclusion: one }) => [name, one]),
      pairs.map((pair) => [`Model compression: ${pair}`, "success"]),
    );
    assert.ok(gitHub.checkRuns().every(({ head_sha: sha }) => sha === commits.head));
    assert.equal(gitHub.comments(7).length, 1);
  },
);

test(
  "a pull request that swaps in a worse model is failed, until it is taken back",
  { skip: actMissing },
  async (t) => {
    const parts = { service: await startRunningService(t), gitHub: await startGitHub(t) };
    const { gitHub } = parts;
    const findCheckRun = (name: string) => gitHub.checkRuns().findLast((run) => run.name === name);
    const batchFile = comparedModels;
    const ofBase = { batchFile, event: "push", environment: { GITHUB_SHA: commits.base } } as const;
    const base = await runOn(t, parts, { ...ofBase, voice: "voice-legacy" });
    assert.ok(base.succeeded, base.log);
    // There is nothing to compare with yet.
    assert.equal(findCheckRun("Model compression")?.conclusion, "neutral");

    const worse = await runOn(t, parts, { batchFile, event: "pullRequest", voice: "voice-v5" });
    assert.ok(!worse.succeeded, worse.log);
    assert.equal(worse.steps["after"]?.outputs["conclusion"], "failure");
    const failed = findCheckRun("Model compression");
    assert.deepEqual([failed?.conclusion, failed?.head_sha], ["failure", commits.head]);
    assert.deepEqual(
      pairs.map((pair) => findCheckRun(`Model compression: ${pair}`)?.conclusion),
      ["success", "success", "failure", "failure"],
    );
    const gateLine =
      batchFile.split("\n").findIndex((line) => line.includes("maxSizeRegression")) + 1;
    assert.deepEqual(
      gitHub.annotations(failed?.id ?? 0).map(({ path, start_line: line }) => [path, line]),
      [
        ["compression.yaml", gateLine],
        ["compression.yaml", gateLine],
      ],
    );

    const better = await runOn(t, parts, {
      batchFile,
      event: "pullRequest",
      voice: "voice-legacy",
    });
    assert.ok(better.succeeded, better.log);
    assert.equal(findCheckRun("Model compression")?.conclusion, "success");
    assert.match(better.steps["compression"]?.log ?? "", /voice.onnx: unchanged/);
    const [comment, ...others] = gitHub.comments(7);
    assert.deepEqual(others, []);
    assert.match(comment?.body ?? "", /4 jobs passed/);
  },
);
