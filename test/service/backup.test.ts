import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { jobPage } from "../../src/contract/jobs/job-lists.ts";
import { isTerminal } from "../../src/contract/jobs/status.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { makeNewJob } from "../records/new-jobs.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { followJob } from "../support/follow-job.ts";
import { realModel } from "../support/real-models.ts";
import { runServiceCommand } from "../support/run-service-command.ts";

/** Runs a command of the service on a data folder. */
function run(command: string, folder: string, dataDirectory: string): Promise<string> {
  return runServiceCommand([command, folder], { MOS_DATA_DIR: dataDirectory });
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "backup-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** Ids of `count` jobs for an uploaded model. */
async function submit({ client }: RunningService, source: string, count: number) {
  const recipe = { evaluation: { level: "none" } } as const;
  const body = { model: { source }, target: "cpu", recipe };
  const jobs: string[] = [];
  for (let i = 0; i < count; i++) jobs.push((await client.call("startCompression", { body })).id);
  return jobs;
}

test("a backup while 100 jobs wait or run has every acknowledged job, log and artifact", async (t) => {
  const service = await startRunningService(t);
  const { source } = await service.client.uploadModel(realModel("voice-v5"));
  const submitted = await submit(service, source, 100);
  const [first = ""] = submitted;
  const { lines } = await followJob(service.client, first);
  const folder = join(await temporaryFolder(t), "copy");
  assert.match(await run("backup", folder, service.directory), /^Records and \d+ files \(/);
  service.process.kill("SIGKILL");

  // Not removed by a hook of its own: jobs write to it until the service below has stopped.
  const directory = await mkdtemp(join(tmpdir(), "restored-"));
  assert.doesNotMatch(await run("restore", folder, directory), /Missing/);
  const from = { directory, token: service.token };
  const restored = await startRunningService(t, { from });
  const page = await restored.client.call("listJobs", { query: { limit: "200" } });
  const { jobs } = jobPage.parse(page);
  assert.deepEqual(jobs.map(({ id }) => id).toSorted(), submitted.toSorted());
  const next = jobs.findLast(({ status }) => !isTerminal(status));
  assert.ok(next);
  await followJob(restored.client, next.id);
  assert.deepEqual((await followJob(restored.client, first)).lines, lines);
  for (const id of [first, next.id]) {
    const { status, artifacts } = await restored.client.call("getJob", { params: { id } });
    assert.equal(status, "Completed");
    for (const { name, bytes } of artifacts) {
      const file = join(directory, `${id}-${name}`);
      await restored.client.downloadArtifact(id, name, { file });
      assert.equal((await readFile(file)).length, bytes);
    }
  }
});

test("backups of a schedule lie beside each other, and the newest stay after this one", async (t) => {
  const service = await startRunningService(t);
  await service.client.uploadModel(realModel("voice-v5"));
  const folder = await temporaryFolder(t);
  const unfinished = "2026-01-03T03-00-00Z.unfinished";
  // The clock was wrong when they were made.
  const others = ["2998-01-01T03-00-00Z", "2999-01-01T03-00-00Z"];
  const earlier = ["2026-01-01T03-00-00Z", ...others, unfinished, "lost+found"];
  for (const name of earlier) await mkdir(join(folder, name));
  const environment = { MOS_DATA_DIR: service.directory };
  const summary = await runServiceCommand(["backup", "--keep=2", folder], environment);
  const names = (await readdir(folder)).toSorted();
  const [newest = "", kept, other] = names;
  assert.deepEqual([kept, other, names.length], ["2999-01-01T03-00-00Z", "lost+found", 3]);
  assert.match(summary, new RegExp(`are in "${join(folder, newest)}"`));
  const directory = await temporaryFolder(t);
  await mkdir(join(directory, "lost+found"));
  assert.doesNotMatch(await run("restore", join(folder, newest), directory), /Missing/);
  await assert.rejects(
    runServiceCommand(["backup", "--keep=0", folder], environment),
    /Option "--keep=0" must be --keep= and how many are kept, 1 to 9999/,
  );
});

test("restore() refuses a file that is damaged, and a folder that is not empty", async (t) => {
  const service = await startRunningService(t);
  await service.client.uploadModel(realModel("voice-v5"));
  const folder = join(await temporaryFolder(t), "copy");
  await run("backup", folder, service.directory);
  await assert.rejects(run("backup", folder, service.directory), /has to be empty, and contains/);
  await assert.rejects(run("restore", folder, service.directory), /has to be empty, and contains/);
  const blobs = await readdir(join(folder, "blobs"), { recursive: true, withFileTypes: true });
  const [blob] = blobs.filter((entry) => entry.isFile());
  assert.ok(blob);
  const file = join(blob.parentPath, blob.name);
  await rm(file);
  await writeFile(file, "other bytes");
  await chmod(file, 0o444);
  const directory = join(await temporaryFolder(t), "data");
  await assert.rejects(
    run("restore", folder, directory),
    /cannot be restored: Content has SHA-256/,
  );
  assert.deepEqual((await readdir(directory)).includes("service.sqlite"), false);
});

test("backup and restore name the jobs whose files are missing", async (t) => {
  const source = await temporaryFolder(t);
  const records = await openRecords(join(source, "service.sqlite"), { now: () => new Date() });
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash");
  const blob = { sha256: "a".repeat(64), bytes: 7 };
  await records.jobBlobs.add(id, blob);
  const artifact = { name: "model.onnx", kind: "model", ...blob } as const;
  const at = new Date().toISOString();
  await records.workers.recordFinalEvents(id, 1, [
    { seq: 1, at, type: "status", status: "Sharding" },
    { seq: 2, at, type: "artifact", artifact },
  ]);
  await records.close();
  const folder = join(await temporaryFolder(t), "copy");
  const missing = `Missing: ${blob.sha256}, model.onnx of ${id}`;
  assert.ok((await run("backup", folder, source)).split("\n").includes(missing));
  const directory = join(await temporaryFolder(t), "data");
  assert.ok((await run("restore", folder, directory)).split("\n").includes(missing));
});
