import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { actMissing } from "../../support/cluster/cluster-missing.ts";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { startGitHub } from "../support/github-double.ts";
import { workflowEvents } from "../support/workflow-event.ts";
import { runWorkflow } from "./run-workflow.ts";

const readme = path.join(import.meta.dirname, "../../../README.md");

/** The built-in ones, which time nothing: the test looks at no latency. */
const briefTargets = builtinTargets.map((target) => ({
  ...target,
  recipe: { ...target.recipe, evaluation: { latencyBudgetSeconds: 0 } },
}));

test(
  "the README's workflow compresses a repository's models as it stands",
  { skip: actMissing },
  async (t) => {
    const [, text = ""] =
      /```yaml\n(name: Compression\n[^`]*)```/.exec(await readFile(readme, "utf8")) ?? [];
    const folder = await mkdtemp(path.join(tmpdir(), "targets-"));
    t.after(() => rm(folder, { recursive: true }));
    const file = path.join(folder, "targets.json");
    await writeFile(file, JSON.stringify({ targets: briefTargets }));
    const service = await startRunningService(t, { environment: { MOS_TARGETS_FILE: file } });
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
