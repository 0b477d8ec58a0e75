import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { artifact } from "../../src/contract/jobs/artifact.ts";
import { postgresMissing, s3Missing } from "../support/cluster/cluster-missing.ts";
import { writeExternalModel } from "../support/external-model.ts";
import { replicateService } from "../support/replicated-service.ts";
import { runServiceCommand } from "../support/run-service-command.ts";
import { startRunningService } from "../support/running-service.ts";

const skip = postgresMissing || s3Missing;

test("a service on a folder moves to PostgreSQL and a bucket", { skip }, async (t) => {
  const { environment } = await replicateService(t);
  const folder = await startRunningService(t);
  const models = await mkdtemp(join(tmpdir(), "moved-"));
  t.after(() => rm(models, { recursive: true }));
  const { source } = await folder.client.uploadModel(await writeExternalModel(models));
  const recipe = { evaluation: { level: "none" } } as const;
  const body = { model: { source }, target: "cpu", recipe };
  const { id } = await folder.client.call("startCompression", { body });
  for await (const _ of folder.client.followLogs(id));
  const settings = { ...environment, MOS_DATA_DIR: folder.directory };
  const move = () => runServiceCommand(["move"], settings);
  await assert.rejects(move(), /Another service uses the data directory/);
  folder.process.kill("SIGTERM");
  await once(folder.process, "exit");

  assert.match(await move(), /^Moved \d+ records; .*\nFiles in the bucket: \d+\n$/);
  const moved = await startRunningService(t, { from: folder, environment });
  const job = await moved.client.call("getJob", { params: { id } });
  const [result] = job.artifacts.map((each) => artifact.parse(each));
  assert.ok(result);
  const headers = { authorization: `Bearer ${folder.token}` };
  const content = await fetch(`${moved.baseUrl}/jobs/${id}/artifacts/${result.name}`, { headers });
  assert.equal((await content.bytes()).length, result.bytes);
  // The manifest and its files are in the bucket.
  const { id: later } = await moved.client.call("startCompression", { body });
  for await (const _ of moved.client.followLogs(later));
  const again = await moved.client.call("getJob", { params: { id: later } });
  assert.equal(again.status, "Completed", again.error?.message);
  assert.equal(again.artifacts[0]?.sha256, result.sha256);
});
