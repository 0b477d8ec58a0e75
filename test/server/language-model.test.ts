import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { z } from "zod";
import { runPythonFile } from "../support/python.ts";
import { realModel, realModelMissing } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";

const exec = promisify(execFile);
const generated = z.object({ answer: z.string() });
const skip = await realModelMissing("smollm2");

test("a GGUF file becomes a folder that ONNX Runtime GenAI answers with", { skip }, async (t) => {
  const { client } = await startRunningService(t, { environment: { MOS_WORKERS: "1" } });
  const { source } = await client.uploadModel(realModel("smollm2"));
  const body = {
    model: { source, name: "smollm2" },
    target: "cpu-int8",
    recipe: {
      scheme: "int4-weight",
      granularity: "block",
      evaluation: { level: "none" },
    },
  } as const;
  const run = async (dryRun: boolean) => {
    const { id } = await client.call("startCompression", { body: { ...body, dryRun } });
    const following = client.followLogs(id);
    while ((await following.next()).done !== true);
    return client.call("getJob", { params: { id } });
  };
  const [planned, job] = [await run(true), await run(false)];
  assert.deepEqual([job.status, job.error], ["Completed", null]);
  assert.equal(job.telemetry.size?.resultBytes, planned.telemetry.size?.resultBytes);
  assert.ok(Number(job.telemetry.size?.resultBytes) < 87e6);
  const archive = job.artifacts.find(({ kind }) => kind === "archive");
  assert.ok(archive);

  const folder = await mkdtemp(join(tmpdir(), "smollm2-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, archive.name);
  await client.downloadArtifact(job.id, archive.name, { file });
  await exec("tar", ["-xf", file, "-C", folder]);
  const report = JSON.parse(await readFile(join(folder, "report.json"), "utf8"));
  assert.equal(report.job, job.id);
  const question = "What is the capital of France?";
  const printed = await runPythonFile("generate_text.py", [folder, question, "12"]);
  assert.match(generated.parse(JSON.parse(printed)).answer, /Paris/);
});
