import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import type { Client } from "../../../src/client/create-client.ts";
import { findFreePort } from "../../support/find-free-port.ts";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { startGitHub } from "../support/github-double.ts";
import { prepareRunner } from "../support/runner.ts";

async function readLogTexts(client: Client, jobId: string): Promise<string[]> {
  const lines = await Array.fromAsync(client.followLogs(jobId));
  return lines.map(({ text }) => text);
}

/** What a step printed of a job, without its own messages meanwhile. */
function jobOutput(log: string, title: string): string[] {
  const lines = log.split("\n");
  const start = lines.indexOf(`::group::${title}`) + 1;
  const end = lines.indexOf("::endgroup::", start);
  return lines
    .slice(start, end)
    .filter((line) => !/^(\[batch\] |\[service\] |::debug::)/.test(line));
}

test("a step goes on when the service is restarted, and loses and repeats no line", async (t) => {
  const environment = { MOS_WORKERS: "1", MOS_PORT: String(await findFreePort()) };
  const first = await startRunningService(t, { environment });
  const gitHub = await startGitHub(t);
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  await copyFile(realModel("ocr-orientation"), path.join(runner.workspace, "orientation.onnx"));
  await copyFile(realModel("voice-v5"), path.join(runner.workspace, "voice.onnx"));
  const step = await runner.start({
    "service-url": first.baseUrl,
    token: first.token,
    "github-token": gitHub.token,
    models: "*.onnx",
    targets: "cpu, cpu-int8",
    recipe: "evaluation: { latencyBudgetSeconds: 0 }",
  });

  await step.untilLog(/^\[shard\]/m);
  first.process.kill("SIGKILL");
  await once(first.process, "exit");
  await step.untilLog(/^\[service\] Not reachable/m);
  const second = await startRunningService(t, { from: first, environment });
  await step.untilLog(/^\[batch\] [2-4] of 4/m);
  second.process.kill("SIGTERM");
  await once(second.process, "exit");
  const { client } = await startRunningService(t, { from: first, environment });

  const end = await step.ended;
  assert.equal(end.code, 0, end.log);
  const batch = await client.call("getBatch", { params: { id: end.outputs["batch-id"] ?? "" } });
  assert.equal(batch.counts.Completed, 4);
  for (const { id, model, target } of batch.jobs) {
    assert.deepEqual(jobOutput(end.log, `${model} for ${target}`), await readLogTexts(client, id));
  }
  const checks = gitHub.checkRuns();
  assert.equal(checks.length, 5);
  assert.ok(
    checks.every(({ status, conclusion }) => status === "completed" && conclusion === "success"),
  );
});
