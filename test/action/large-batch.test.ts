import assert from "node:assert/strict";
import test from "node:test";
import type { UnnumberedEvent } from "../../src/contract/worker-protocol/messages.ts";
import { githubLimits } from "../../src/report/markdown.ts";
import { logEvent, makeTestApp, type TestApp, beginTestWorker } from "../server/test-app.ts";
import { startGitHub } from "./support/github-double.ts";
import { prepareRunner } from "./support/runner.ts";
import { serveApp } from "./support/serve-app.ts";
import { workflowEvents } from "./support/workflow-event.ts";

const jobCount = 2000;
const longLine = "x".repeat(65_000);

const size = { originalBytes: 1_000_000, resultBytes: 250_000, ratio: 0.25, predicted: false };
const completed: readonly UnnumberedEvent[] = [
  { type: "telemetry", telemetry: { size } },
  { type: "result", outcome: "Completed" },
];
const failed: readonly UnnumberedEvent[] = [
  {
    type: "result",
    outcome: "Failed",
    error: { code: "model_invalid", message: `::error::${"🧪|`".repeat(200)}` },
  },
];

/** Every second job fails; the first one prints lines as long as the service takes them. */
async function play(service: TestApp, jobIds: readonly string[]): Promise<void> {
  for (const [i, id] of jobIds.entries()) {
    const worker = await beginTestWorker(service, id);
    const lines =
      i === 0
        ? Array.from({ length: 16 }, () => longLine)
        : ["::set-output name=conclusion::success"];
    await worker.report({ type: "status", status: "Sharding" });
    for (const line of lines) await worker.report(logEvent(line));
    const end = i % 2 === 0 ? completed : failed;
    await worker.report({ type: "status", status: "Optimizing" }, ...end);
  }
}

test("a batch of 2,000 jobs is followed to its end, and reported within GitHub's limits", async (t) => {
  const service = await makeTestApp(t);
  const gitHub = await startGitHub(t);
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  const models = Array.from(
    { length: jobCount / 2 },
    (_, i) => `m${i}=https://models.example/${i}.onnx`,
  );
  const inputs = {
    "service-url": await serveApp(t, service),
    token: await service.tokenFor("admin"),
    "github-token": gitHub.token,
    models: models.join("\n"),
    targets: "cpu,cpu-int8",
    "job-checks": "none",
    comment: "true",
  };
  const step = await runner.start(inputs, { event: workflowEvents.pullRequest });
  await step.untilLog(/^Batch batch-\w+: 2000 jobs$/m);
  await play(service, service.submitted);
  const { code, outputs, summary, commands, visibleLines } = await step.ended;
  assert.equal(code, 1);
  assert.deepEqual(
    [outputs["jobs"], outputs["completed"], outputs["failed"]],
    ["2000", "1000", "1000"],
  );
  assert.equal(visibleLines.filter((line) => line === longLine).length, 16);
  assert.equal(
    visibleLines.filter((line) => line === "::set-output name=conclusion::success").length,
    jobCount - 1,
  );
  assert.ok(!commands.some(({ command }) => command === "set-output"));

  assert.ok(Buffer.byteLength(summary) <= githubLimits.jobSummaryBytes);
  assert.match(summary, /^\*\*1000 of 2000 jobs failed\*\*/m);
  assert.match(summary, /^\| `m999` \| `cpu-int8` \|/m);
  const [ofBatch] = gitHub.checkRuns();
  assert.equal(ofBatch?.output.title, "1000 of 2000 jobs failed");
  assert.equal(gitHub.comments(7).length, 1);
  assert.ok(gitHub.requests.every(({ method, status }) => method === "GET" || status < 300));
});
