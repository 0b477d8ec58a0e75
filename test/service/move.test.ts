import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import test from "node:test";
import { promisify } from "node:util";
import { artifact } from "../../src/contract/artifact.ts";
import { postgresMissing, s3Missing } from "../support/cluster/cluster-missing.ts";
import { realModel } from "../support/real-models.ts";
import { replicateService } from "../support/replicated-service.ts";
import { startRunningService } from "../support/running-service.ts";
import { inheritedEnvironment } from "../support/inherited-environment.ts";

const main = new URL("../../src/service/main.ts", import.meta.url).pathname;
const skip = postgresMissing || s3Missing;

test("a service on a folder moves to PostgreSQL and a bucket", { skip }, async (t) => {
  const { environment } = await replicateService(t);
  const folder = await startRunningService(t);
  const { source } = await folder.client.uploadModel(realModel("ocr-orientation"));
  const recipe = { evaluation: { level: "none" } } as const;
  const body = { model: { source }, target: "cpu", recipe };
  const { id } = await folder.client.call("startCompression", { body });
  for await (const _ of folder.client.followLogs(id));
  const env = { ...inheritedEnvironment(), ...environment, MOS_DATA_DIR: folder.directory };
  const move = () => promisify(execFile)(process.execPath, [main, "move"], { env });
  await assert.rejects(move(), /Another service uses the data directory/);
  folder.process.kill("SIGTERM");
  await once(folder.process, "exit");

  assert.match((await move()).stdout, /^Moved \d+ records; .*\nFiles in the bucket: \d+\n$/);
  const moved = await startRunningService(t, { from: folder, environment });
  const job = await moved.client.call("getJob", { params: { id } });
  const [result] = job.artifacts.map((each) => artifact.parse(each));
  assert.ok(result);
  const headers = { authorization: `Bearer ${folder.token}` };
  const content = await fetch(`${moved.baseUrl}/jobs/${id}/artifacts/${result.name}`, { headers });
  assert.equal((await content.bytes()).length, result.bytes);
  await moved.client.call("startCompression", { body });
});
