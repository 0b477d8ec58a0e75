import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import type { Job } from "../../src/contract/jobs/job.ts";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { listExternalData } from "../../src/model-files/list-external-data.ts";
import { startCuttingRelay } from "../support/cutting-relay.ts";
import { externalFiles, hashTestFile, writeExternalModel } from "../support/external-model.ts";
import { runServiceCommand } from "../support/run-service-command.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";

let [folder, file] = ["", ""];
let service: RunningService;
const cleanup: (() => Promise<void>)[] = [];
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "external-"));
  file = await writeExternalModel(folder, 512);
  service = await startRunningService({ after: (work: () => Promise<void>) => cleanup.push(work) });
});
after(async () => {
  for (const work of cleanup) await work();
  await rm(folder, { recursive: true });
});

/** The result has external data too. */
const recipe = { sharding: { maxShardBytes: 65_536 }, evaluation: { level: "none" } } as const;

async function untilEnded(id: string, { client } = service): Promise<Job> {
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
      recipe: { scheme: "int8-weight", sharding: recipe.sharding, evaluation },
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

test("a batch's archive has the results of models with external data, whole", async () => {
  const { client, baseUrl, token } = service;
  const { source } = await client.uploadModel(file);
  const models = [{ source, name: "net" }];
  const { id, jobs } = await client.call("submitBatch", {
    body: { models, targets: ["cpu"], recipe },
  });
  const { name, artifacts } = await untilEnded(jobs[0]?.id ?? "");
  const results = path.join(folder, "results");
  await mkdir(results);
  const tar = spawn("tar", ["-x", "-C", results], { stdio: ["pipe", "inherit", "inherit"] });
  const headers = { authorization: `Bearer ${token}` };
  const { body } = await fetch(`${baseUrl}/batches/${id}/artifacts`, { headers });
  assert.ok(body);
  await Promise.all([pipeline(Readable.fromWeb(body), tar.stdin), once(tar, "exit")]);
  const at = path.join(results, name.replaceAll(" ", "-"));
  for (const each of artifacts) {
    assert.equal(await hashTestFile(path.join(at, each.name)), each.sha256);
  }
  const external = listExternalData(path.join(at, "model.onnx"));
  assert.ok(external.length > 1);
  for (const each of external) assert.ok((await readdir(at)).includes(each));
});

test("a backup has a manifest and its files, which the restored service works on", async (t) => {
  const { source } = await service.client.uploadModel(file);
  const [copy, directory] = [path.join(folder, "copy"), path.join(folder, "restored")];
  const backup = await runServiceCommand(["backup", copy], { MOS_DATA_DIR: service.directory });
  assert.doesNotMatch(backup, /Missing/);
  const restored = await runServiceCommand(["restore", copy], { MOS_DATA_DIR: directory });
  assert.doesNotMatch(restored, /Missing/);
  const from = { directory, token: service.token };
  const again = await startRunningService(t, { from });
  const body = { model: { source }, target: "cpu", recipe };
  const [before, after] = await Promise.all(
    [service, again].map(async (each) => {
      const { id } = await each.client.call("startCompression", { body });
      return untilEnded(id, each);
    }),
  );
  assert.equal(after?.status, "Completed", after?.error?.message);
  const hashes = (job?: Job) => job?.artifacts.map(({ sha256 }) => sha256).slice(0, 3);
  assert.deepEqual(hashes(after), hashes(before));
});

test("an upload that breaks off at random is not begun anew", async (t) => {
  const large = path.join(folder, "large");
  await mkdir(large);
  const model = await writeExternalModel(large, 1024);
  const relay = await startCuttingRelay(t, new URL(service.baseUrl).origin, [400_000, 1_000_000]);
  const client = createClient({ routes, baseUrl: `${relay.origin}/v1`, token: service.token });
  const { source, bytes } = await client.uploadModel(model);
  const { counted } = relay;
  t.diagnostic(`${counted.bytes} bytes of ${bytes} were sent, ${counted.cuts} connections cut`);
  assert.ok(counted.cuts >= 8);
  // What the service has not taken when a connection breaks is sent again.
  assert.ok(counted.bytes <= bytes + counted.cuts * 128 * 1024);
  const body = { model: { source }, target: "cpu", recipe };
  const { id } = await service.client.call("startCompression", { body });
  assert.equal((await untilEnded(id)).status, "Completed");
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
