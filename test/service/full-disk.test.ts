import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { type TestContext } from "node:test";
import { ProblemError } from "../../src/client/problem-error.ts";
import { systemErrorCode } from "../../src/storage/file-error.ts";
import { mountSmallDisk } from "../support/mount-small-disk.ts";
import { startRunningService } from "../support/running-service.ts";
import { startSilentHost, unlimited } from "../support/submit-until.ts";
import { until } from "../support/until.ts";

/** A service on a disk of 64 MB, of which it keeps a tenth for records. */
async function startOnSmallDisk(t: TestContext) {
  const cleanup = new AsyncDisposableStack();
  t.after(() => cleanup.disposeAsync());
  const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
  const disk = await mountSmallDisk(owner, "64m");
  if (disk === undefined) return undefined;
  const service = await startRunningService(owner, {
    directory: join(disk, "data"),
    environment: unlimited,
  });
  const filler = join(disk, "filler");
  const leave = async (bytes: number) => {
    await rm(filler, { force: true });
    const { bavail, bsize } = await statfs(disk);
    const content = Buffer.alloc(Math.max(0, bavail * bsize - bytes));
    // The service writes meanwhile, so that the last byte can be gone before.
    await writeFile(filler, content).catch((error: unknown) => {
      if (systemErrorCode(error) !== "ENOSPC") throw error;
    });
  };
  const send = (method: string, path: string, body?: string) =>
    fetch(`${service.baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${service.token}`,
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body }),
    });
  const source = await startSilentHost(owner);
  return { owner, service, send, leave, source, free: () => rm(filler) };
}

const megabyte = 2 ** 20;
/** What SQLite needs to open a database; nothing can be written then. */
const bytesToOpen = 40 * 1024;

test("a disk that runs full refuses new work, keeps what runs going and recovers", async (t) => {
  const small = await startOnSmallDisk(t);
  if (small === undefined) return t.skip("Needs the right to mount a small file system");
  const { service, send, leave, source, free } = small;
  const request = { model: { source }, target: "cpu" };
  const submit = () => send("POST", "/compress", JSON.stringify(request));
  const job = await service.client.call("startCompression", { body: request });
  await leave(4 * megabyte);
  const refused = await submit();
  assert.equal(refused.status, 507);
  assert.match(await refused.text(), /"code":"storage_full".*left, and .* are kept for records/);
  assert.equal(refused.headers.get("retry-after"), "60");
  const batch = { models: [{ source }], targets: ["cpu"] };
  assert.equal((await send("POST", "/batches", JSON.stringify(batch))).status, 507);
  const model = "x".repeat(megabyte);
  const upload = `/models/${createHash("sha256").update(model).digest("hex")}`;
  assert.equal((await send("PUT", upload, model)).status, 507);
  assert.equal((await send("POST", `/jobs/cancel/${job.id}`)).ok, true);
  assert.equal((await send("GET", "/jobs")).status, 200);
  await free();
  assert.equal((await submit()).status, 202);
  assert.equal((await send("PUT", upload, model)).status, 201);
});

test("an upload stops before it takes what is kept for records", async (t) => {
  const small = await startOnSmallDisk(t);
  if (small === undefined) return t.skip("Needs the right to mount a small file system");
  const { send, leave } = small;
  await leave(20 * megabyte);
  const model = "x".repeat(30 * megabyte);
  const sha256 = createHash("sha256").update(model).digest("hex");
  assert.equal((await send("PUT", `/models/${sha256}`, model)).status, 507);
  assert.equal((await send("HEAD", `/models/${sha256}`)).status, 404);
  const little = "y".repeat(megabyte);
  const other = createHash("sha256").update(little).digest("hex");
  assert.equal((await send("PUT", `/models/${other}`, little)).status, 201);
});

test("a disk without a byte left loses nothing, and goes on once there is room", async (t) => {
  const small = await startOnSmallDisk(t);
  if (small === undefined) return t.skip("Needs the right to mount a small file system");
  const { service, send, leave, source, free } = small;
  const request = { model: { source }, target: "cpu" };
  const job = await service.client.call("startCompression", { body: request });
  await leave(0);
  const body = JSON.stringify({ name: "x".repeat(100), scopes: ["jobs:read"] });
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => send("POST", "/tokens", body)),
  );
  assert.ok(answers.every(({ status }) => status === 201 || status === 507));
  assert.equal((await send("GET", `/jobs/${job.id}`)).status, 200);
  await free();
  assert.equal((await send("POST", "/tokens", body)).status, 201);
  assert.equal((await send("POST", "/compress", JSON.stringify(request))).status, 202);
});

test("a service that is killed and started on a full disk reads, and goes on by itself once there is room", async (t) => {
  const small = await startOnSmallDisk(t);
  if (small === undefined) return t.skip("Needs the right to mount a small file system");
  const { owner, service, leave, source, free } = small;
  const request = { model: { source }, target: "cpu" };
  const job = await service.client.call("startCompression", { body: request });
  const find = () => service.client.call("getJob", { params: { id: job.id } });
  await until("a worker has begun", async () => (await find()).status !== "Pending");
  service.process.kill("SIGKILL");
  await once(service.process, "exit");
  // A log that was written before is written again, and takes no more room.
  const database = new DatabaseSync(join(service.directory, "service.sqlite"));
  database.exec("pragma wal_checkpoint(truncate)");
  database.close();
  await leave(bytesToOpen);
  const again = await startRunningService(owner, { from: service, environment: unlimited });
  const { client } = again;
  const jobs = await client.call("listJobs", {});
  assert.deepEqual(
    jobs.jobs.map(({ id }) => id),
    [job.id],
  );
  const isFull = (error: unknown) => error instanceof ProblemError && error.problem.status === 507;
  await assert.rejects(client.call("startCompression", { body: request }), isFull);
  await assert.rejects(client.call("cancelJob", { params: { id: job.id } }), isFull);
  await free();
  await until("the service takes jobs again", () =>
    client.call("startCompression", { body: request }).catch(() => undefined),
  );
  await client.call("cancelJob", { params: { id: job.id } });
});
