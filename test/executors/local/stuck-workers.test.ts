import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { readStartMark } from "../../../src/executors/local/worker-process.ts";
import { project, startService } from "./local-service.ts";

function countHanging(lines: readonly string[]): number {
  return lines.filter((line) => line === "waiting").length;
}

test("a worker that hangs is stopped, its job tried again and then failed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const service = await startService(t, { concurrency: 1, silentWorkerSeconds: 4 });
  const executor = await service.start();
  const [id = "", next = ""] = await service.create("hangs", "completes");
  executor.submit(project, [id, next]);
  for (const attempt of [1, 2, 3]) {
    await service.until(id, (_, printed) => countHanging(printed) === attempt);
    t.mock.timers.tick(4_000);
  }
  const { job, lines } = await service.ended(id);
  const message = "The worker was stopped: nothing was heard from it for 4 s";
  assert.deepEqual(job.error, { code: "worker_killed", message });
  assert.equal(lines.filter((line) => line === message).length, 3);
  const pids = lines.flatMap((line) => /process (\d+)/.exec(line)?.[1] ?? []);
  assert.equal(pids.length, 3);
  for (const pid of pids) assert.equal(await readStartMark(Number(pid)), undefined);
  assert.equal((await service.ended(next)).job.status, "Completed");
});

test("a job without a deadline is stopped at that of the service", async (t) => {
  const service = await startService(t, { deadlineSeconds: 1 });
  const executor = await service.start();
  const [id = ""] = await service.create("waits");
  executor.submit(project, [id]);
  assert.equal((await service.ended(id)).job.error?.code, "deadline_exceeded");
});

test("folders that are too deep to be removed do not keep a service from starting", async (t) => {
  const service = await startService(t);
  const [id = ""] = await service.create("completes");
  const cwd = join(service.workDirectory, id);
  await mkdir(cwd, { recursive: true });
  const dig = `name=$(printf '%0200d' 0); for i in $(seq 30); do mkdir $name; cd -P $name; done`;
  await promisify(execFile)("/bin/sh", ["-c", dig], { cwd });
  await service.start();
  const left = await readdir(service.workDirectory);
  assert.deepEqual(
    left.filter((name) => name !== id),
    [],
  );
  assert.equal((await service.ended(id)).job.status, "Completed");
});
