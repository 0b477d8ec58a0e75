import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { actMissing } from "../../support/cluster/cluster-missing.ts";
import { gitHubAppFileContent, startGitHubWithApp } from "../../github-app/reported-batch.ts";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { commits, workflowEvents } from "../support/workflow-event.ts";
import { runWorkflow, workflowFile } from "./run-workflow.ts";
import { until } from "../../support/until.ts";

const batchFile = `
models: [orientation.onnx]
targets: [cpu, cpu-int8]
recipe: { evaluation: { samples: 2, latencyBudgetSeconds: 2 } }
gates: { maxSizeRatio: 0.1 }
`;

test(
  "a step that does not wait leaves the check runs to the service",
  { skip: actMissing },
  async (t) => {
    const { gitHub, credentials } = await startGitHubWithApp(t);
    // The workflow's own token may write nothing.
    gitHub.permissions.checks = "none";
    const folder = await mkdtemp(path.join(tmpdir(), "app-"));
    t.after(() => rm(folder, { recursive: true }));
    const appFile = path.join(folder, "github-app.yaml");
    await writeFile(appFile, gitHubAppFileContent(credentials));
    const service = await startRunningService(t, {
      environment: {
        MOS_GITHUB_APP_FILE: appFile,
        MOS_PUBLIC_URL: "https://mos.example",
      },
    });
    const { succeeded, steps, log } = await runWorkflow(t, {
      workflow: { copyFrom: workflowFile("unattended.yml") },
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
    const { "batch-id": id = "", conclusion } = steps["compression"]?.outputs ?? {};
    assert.equal(conclusion, "pending");
    const batch = await service.client.call("getBatch", { params: { id } });
    for (const job of batch.jobs) for await (const _ of service.client.followLogs(job.id)) continue;

    const whole = await until("the service has reported what came of it", async () => {
      return gitHub
        .checkRuns()
        .find(({ name, status }) => name === "Model compression" && status === "completed");
    });
    assert.deepEqual(
      [whole.conclusion, whole.head_sha, whole.app?.slug],
      ["failure", commits.head, "model-optimization"],
    );
    assert.match(whole.details_url ?? "", new RegExp(id));
    assert.deepEqual(
      gitHub.checkRuns().map(({ name }) => name),
      [
        "Model compression",
        "Model compression: orientation for cpu",
        "Model compression: orientation for cpu-int8",
      ],
    );
  },
);
