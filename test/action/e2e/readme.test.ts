import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { actMissing } from "../../support/cluster/cluster-missing.ts";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { startGitHub } from "../support/github-double.ts";
import { workflowEvents } from "../support/workflow-event.ts";
import { runWorkflow } from "./run-workflow.ts";

const readme = path.join(import.meta.dirname, "../../../README.md");

test(
  "the README's workflow compresses a repository's models as it stands",
  { skip: actMissing },
  async (t) => {
    const [, text = ""] =
      /```yaml\n(name: Compression\n[^`]*)```/.exec(await readFile(readme, "utf8")) ?? [];
    const service = await startRunningService(t);
    const gitHub = await startGitHub(t);
    const { succeeded, summary, log } = await runWorkflow(t, {
      workflow: { text },
      event: workflowEvents.pullRequest,
      files: { "models/orientation.onnx": { copyFrom: realModel("ocr-orientation") } },
      environment: gitHub.environment,
      secrets: { GITHUB_TOKEN: gitHub.token, MOS_TOKEN: service.token },
      variables: { MOS_URL: service.baseUrl },
    });
    assert.ok(succeeded, log);
    assert.match(summary, /2 jobs passed/);
    assert.deepEqual(
      gitHub.checkRuns().map(({ name, conclusion }) => [name, conclusion]),
      [
        ["Model compression", "success"],
        ["Model compression: models-orientation for cpu", "success"],
        ["Model compression: models-orientation for cpu-int8", "success"],
      ],
    );
  },
);
