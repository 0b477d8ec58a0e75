import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import path from "node:path";
import test, { after } from "node:test";
import { batches, compressionJobs } from "../../../src/resources/custom-resources.ts";
import { resources } from "../../../src/kubernetes/resources.ts";
import { actMissing, clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { startInstallation } from "../../executors/cluster/installation.ts";
import { realModel } from "../../support/real-models.ts";
import { startGitHub } from "../support/github-double.ts";
import { prepareRunner } from "../support/runner.ts";
import { workflowEvents } from "../support/workflow-event.ts";
import { runWorkflow, workflowFile } from "./run-workflow.ts";
import { until } from "../../support/until.ts";

const batchFile = `
models: [orientation.onnx]
targets: [cpu, cpu-int8]
recipe: { evaluation: { samples: 2, latencyBudgetSeconds: 0 } }
gates: { maxSizeRatio: 0.9 }
`;

let started: Promise<ControlPlane> | undefined;
after(async () => (await started)?.stop());
function controlPlane(): Promise<ControlPlane> {
  started ??= startControlPlane();
  return started;
}

async function listItems<T>(pages: AsyncIterable<{ readonly items: readonly T[] }>): Promise<T[]> {
  return (await Array.fromAsync(pages)).flatMap(({ items }) => items);
}

test(
  "a pull request's models are compressed in a cluster",
  { skip: actMissing || clusterMissing },
  async (t) => {
    const { service } = await startInstallation(t, await controlPlane());
    const gitHub = await startGitHub(t);
    const { succeeded, steps, log } = await runWorkflow(t, {
      workflow: { copyFrom: workflowFile("compression.yml") },
      event: workflowEvents.pullRequest,
      files: {
        "compression.yaml": { text: batchFile },
        "orientation.onnx": { copyFrom: realModel("ocr-orientation") },
      },
      environment: gitHub.environment,
      secrets: { GITHUB_TOKEN: gitHub.token, MOS_TOKEN: service.token },
      variables: { MOS_URL: service.baseUrl },
    });
    assert.ok(succeeded, log);
    assert.equal(steps["after"]?.outputs["artifacts"], "orientation-cpu orientation-cpu-int8 ");
    assert.ok(gitHub.checkRuns().every(({ conclusion }) => conclusion === "success"));
    assert.equal(gitHub.checkRuns().length, 3);
    await until("the Batch is Completed", async () => {
      const [batch] = await listItems(service.api.list(batches));
      return batch?.status?.status === "Completed";
    });
  },
);

test("a cancelled workflow leaves no pod behind", { skip: clusterMissing }, async (t) => {
  const { service } = await startInstallation(t, await controlPlane());
  const gitHub = await startGitHub(t);
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  await copyFile(realModel("ocr-orientation"), path.join(runner.workspace, "orientation.onnx"));
  const step = await runner.start({
    "service-url": service.baseUrl,
    token: service.token,
    "github-token": gitHub.token,
    models: "*.onnx",
    targets: "cpu, cpu-int8",
    recipe: "evaluation: { samples: 1024, latencyBudgetSeconds: 0 }",
  });
  await step.untilLog(/^\[evaluate\]/m);
  const { signals, log } = await step.cancel();
  assert.deepEqual(signals, ["SIGINT"], log);
  await until("all jobs are Cancelled", async () => {
    const jobs = await listItems(service.api.list(compressionJobs));
    return jobs.length === 2 && jobs.every(({ status }) => status?.status === "Cancelled");
  });
  assert.deepEqual(await listItems(service.api.list(resources.pods)), []);
});
