import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Job } from "../../src/contract/job.ts";
import { externalFiles, hashTestFile, writeExternalModel } from "../support/external-model.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";

let [folder, file] = ["", ""];
let service: RunningService;
const cleanup: (() => Promise<void>)[] = [];
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "external-"));
  file = await writeExternalModel(folder);
  service = await startRunningService({ after: (work: () => Promise<void>) => cleanup.push(work) });
});
after(async () => {
  for (const work of cleanup) await work();
  await rm(folder, { recursive: true });
});

async function untilEnded(id: string): Promise<Job> {
  const { client } = service;
  const log = client.followLogs(id);
  while (!(await log.next()).done);
  return client.call("getJob", { params: { id } });
}

test("an uploaded model with external data is compressed, evaluated and tried again", async () => {
  const { client } = service;
  const uploaded = await client.uploadModel(file);
  assert.equal(uploaded.sent, true);
  assert.equal(uploaded.sha256, await hashTestFile(file));
  assert.deepEqual(await client.uploadModel(file), { ...uploaded, sent: false });
  const evaluation = { samples: 2, latencyBudgetSeconds: 0 };
  const { jobs } = await client.call("submitBatch", {
    body: {
      models: [{ source: uploaded.source, sha256: uploaded.sha256, name: "net" }],
      targets: ["cpu"],
      recipe: { scheme: "int8-weight", evaluation },
    },
  });
  const job = await untilEnded(jobs[0]?.id ?? "");
  assert.equal(job.status, "Completed", job.error?.message);
  assert.equal(job.model.bytes, uploaded.bytes);
  assert.ok((job.telemetry.accuracy?.cosine ?? 0) > 0.99);
  const retried = await client.call("retryJob", { params: { id: job.id } });
  const hashes = ({ artifacts }: Job) => artifacts.map(({ name, sha256 }) => `${name} ${sha256}`);
  const again = await untilEnded(retried.id);
  assert.deepEqual(hashes(again)[0], hashes(job)[0]);
});

test("an upload whose files are not those of the model fails with their names", async () => {
  const { client } = service;
  const names = ["net.onnx", ...externalFiles, "unused.data"];
  await client.uploadModel(file);
  const files = await Array.fromAsync(names, async (name) => {
    const at = path.join(folder, name === "unused.data" ? externalFiles[0] : name);
    return { path: name, sha256: await hashTestFile(at) };
  });
  const fail = async (count: number) => {
    const { source } = await client.call("createManifest", {
      body: { files: files.slice(0, count) },
    });
    const body = { model: { source }, target: "cpu" };
    const { id } = await client.call("startCompression", { body });
    return (await untilEnded(id)).error;
  };
  const missing = await fail(2);
  assert.equal(missing?.code, "external_data_missing");
  assert.match(missing.message, /does not name "parts\/second\.data", which the model refers to/);
  const unused = await fail(4);
  assert.equal(unused?.code, "external_data_unused");
  assert.match(unused.message, /does not refer to "unused\.data", which the manifest names/);
});
