import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, mkdtemp, readdir } from "node:fs/promises";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../../../src/contract/errors.ts";
import { maxDisruptions } from "../../../src/contract/limits.ts";
import { readStartMark } from "../../../src/executors/local/worker-process.ts";
import { resumeUnfinishedJobs } from "../../../src/executors/local/resume-unfinished-jobs.ts";
import { openRecords } from "../../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob } from "../../records/new-jobs.ts";
import { now, project, startService } from "./local-service.ts";
import { inheritedEnvironment } from "../../support/inherited-environment.ts";
import { readLog } from "../../records/read-log.ts";

/** Zombies, which nobody may be there to reap, do not run. */
async function isRunning(pid: number): Promise<boolean> {
  return (await readStartMark(pid)) !== undefined;
}

function pidIn(lines: readonly string[]): number {
  return Number(/process (\d+)/.exec(lines.join("\n"))?.[1]);
}

test("the local executor runs a job to its end and leaves no scratch folder", async (t) => {
  const service = await startService(t);
  const executor = await service.start();
  const [id = ""] = await service.create("completes");
  executor.submit(project, [id]);
  const { job, lines } = await service.ended(id);
  assert.equal(job.status, "Completed");
  assert.match(lines.join("\n"), /attempt 1/);
  await executor.close();
  assert.deepEqual(await readdir(service.workDirectory), []);
});

test("the local executor gives workers only the environment that they need", async (t) => {
  const service = await startService(t);
  const executor = await service.start();
  const [id = ""] = await service.create("logs-environment");
  executor.submit(project, [id]);
  const { lines } = await service.ended(id);
  const own =
    "MOS_JOB_ID MOS_JOB_TOKEN MOS_SERVICE_URL MOS_STORAGE_DIR MOS_WORK_DIR ORT_DISABLE_TELEMETRY TMPDIR";
  const all = [...own.split(" "), ...Object.keys(inheritedEnvironment())];
  assert.equal(lines.at(-1), all.toSorted().join(" "));
});

test("the local executor works on as many jobs at once as it may, in order", async (t) => {
  const service = await startService(t, { concurrency: 1 });
  const executor = await service.start();
  const ids = await service.create("completes", "completes", "fails", "completes");
  executor.submit(project, ids);
  const ends = await Promise.all(ids.map((id) => service.ended(id)));
  assert.deepEqual(
    ends.map(({ job }) => job.status),
    ["Completed", "Completed", "Failed", "Completed"],
  );
  const finished = ends.map(({ job }) => job.finishedAt ?? "");
  assert.deepEqual(finished.toSorted(), finished);
  for (const [i, { job }] of ends.slice(1).entries())
    assert.ok((job.startedAt ?? "") >= (finished[i] ?? ""));
});

test("the local executor stops a job at its deadline, leaving no process", async (t) => {
  const service = await startService(t);
  const executor = await service.start();
  const model = { source: "https://models.test/m.onnx", name: "ignores-sigterm" };
  const { id } = await service.records.jobs.create(
    project,
    makeNewJob({ model, deadlineSeconds: 1 }),
  );
  executor.submit(project, [id]);
  const { job, lines } = await service.ended(id);
  assert.deepEqual([job.status, job.error?.code], ["Failed", "deadline_exceeded"]);
  assert.equal(await isRunning(pidIn(lines)), false);
});

const deaths = [
  ["crashes", "worker_crashed", "The worker crashed with SIGABRT", /Ort::Exception/],
  [
    "runs-out-of-memory",
    "out_of_memory",
    "The worker ran out of memory",
    /earlier output .* dropped[^]*heap limit/,
  ],
  [
    "exits-early",
    "worker_crashed",
    "The worker exited with code 0 before it reported a result",
    /attempt 1/,
  ],
] as const;
for (const [behaviour, code, message, lastWords] of deaths) {
  test(`the local executor fails a job whose worker ${behaviour}, and keeps its last words`, async (t) => {
    const service = await startService(t);
    const executor = await service.start();
    const [id = ""] = await service.create(behaviour);
    executor.submit(project, [id]);
    const { job, lines } = await service.ended(id);
    assert.deepEqual([job.status, job.error], ["Failed", { code, message }]);
    assert.match(lines.join("\n"), lastWords);
  });
}

test("the local executor fails a job whose worker was killed, and keeps its lines", async (t) => {
  const service = await startService(t);
  const executor = await service.start();
  const [id = ""] = await service.create("waits");
  executor.submit(project, [id]);
  const { lines } = await service.until(id, (_, printed) => printed.includes("waiting"));
  const pid = pidIn(lines);
  assert.ok(getPriority(pid) > getPriority(), "the service comes first");
  process.kill(pid, "SIGKILL");
  const end = await service.ended(id);
  assert.equal(end.job.error?.code, "worker_killed");
  assert.deepEqual(end.lines, lines);
});

for (const behaviour of ["waits", "ignores-sigterm", "has-children"]) {
  test(`the local executor leaves no process of a cancelled job that ${behaviour}`, async (t) => {
    const service = await startService(t);
    const executor = await service.start();
    const [id = ""] = await service.create(behaviour);
    executor.submit(project, [id]);
    const { lines } = await service.until(id, (_, printed) => printed.length === 2);
    assert.equal((await service.records.jobs.cancel(project, id))?.status, "Cancelling");
    const { job } = await service.ended(id);
    assert.equal(job.status, "Cancelled");
    assert.equal(await isRunning(pidIn(lines)), false);
    const child = /child (\d+)/.exec(lines.join("\n"))?.[1];
    if (child !== undefined) assert.equal(await isRunning(Number(child)), false);
    await assert.rejects(access(join(service.workDirectory, id)));
  });
}

test("the local executor stops the running jobs of a batch with failFast when one fails", async (t) => {
  const service = await startService(t);
  const executor = await service.start();
  const jobs = ["waits", "fails", "completes"].map((name) =>
    makeNewJob({ model: { source: "https://models.test/m.onnx", name } }),
  );
  const batch = await service.records.batches.create(
    project,
    makeNewBatch({ jobs, failFast: true }),
  );
  const [waiting = "", failing = "", last = ""] = batch.jobs.map((job) => job.id);
  executor.submit(project, [waiting]);
  await service.until(waiting, (_, printed) => printed.includes("waiting"));
  executor.submit(project, [failing, last]);
  assert.equal((await service.ended(failing)).job.status, "Failed");
  assert.equal((await service.ended(waiting)).job.status, "Cancelled");
  assert.equal((await service.ended(last)).job.status, "Cancelled");
  assert.equal((await service.records.batches.find(project, batch.id))?.status, "Failed");
});

test("the local executor keeps a job's end until the disk has room to record it", async (t) => {
  const logged: string[] = [];
  const service = await startService(t, {
    executorRecords: (records) => {
      const end: typeof records.attempts.end = async (...ended) => {
        if (logged.length === 0)
          throw new ServiceError("storage_full", "The database cannot grow: its disk is full");
        await records.attempts.end(...ended);
      };
      return { ...records, attempts: { ...records.attempts, end } };
    },
    log: (message) => logged.push(message),
  });
  const executor = await service.start();
  const [id = ""] = await service.create("exits-early");
  executor.submit(project, [id]);
  const { job } = await service.ended(id);
  assert.equal(job.error?.code, "worker_crashed");
  assert.deepEqual(logged, [
    "Cannot record a job's progress: The database cannot grow: its disk is full",
  ]);
});

test("the local executor runs a job once the disk that its worker is prepared on works again", async (t) => {
  const logged: string[] = [];
  const service = await startService(t, {
    executorRecords: (records) => {
      const findAssignment: typeof records.workers.findAssignment = async (...asked) => {
        if (logged.length === 0) throw Object.assign(new Error("i/o error"), { code: "EIO" });
        return records.workers.findAssignment(...asked);
      };
      return { ...records, workers: { ...records.workers, findAssignment } };
    },
    log: (message) => logged.push(message),
  });
  const executor = await service.start();
  const [id = ""] = await service.create("completes");
  executor.submit(project, [id]);
  assert.equal((await service.ended(id)).job.status, "Completed");
  assert.deepEqual(logged, [`No worker can be run: i/o error (job "${id}")`]);
});

test("a service that was stopped and started again runs its jobs again, those that waited in order", async (t) => {
  const service = await startService(t, { concurrency: 1 });
  const [running = "", ...waiting] = await service.create("restarts", "completes", "completes");
  const before = await service.start();
  const { lines } = await service.until(running, (_, printed) => printed.includes("waiting"));
  await before.close();
  assert.equal(await isRunning(pidIn(lines)), false);
  assert.equal((await service.records.jobs.find(project, running))?.status, "Sharding");
  await service.start();
  const ends = await Promise.all([running, ...waiting].map((id) => service.ended(id)));
  const finished = ends.map(({ job }) => job.finishedAt ?? "");
  assert.deepEqual(finished.toSorted(), finished);
  assert.ok(ends.every(({ job }) => job.status === "Completed"));
  assert.deepEqual(ends[0]?.lines.slice(0, 4), [
    ...lines,
    "The service was stopped while the worker ran",
    "Another worker takes over: attempt 2 begins",
  ]);
});

test("a service that was killed stops the workers it left before it runs their jobs again", async (t) => {
  const service = await startService(t);
  const [id = "", cancelled = ""] = await service.create("completes", "completes");
  const left = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  const exit = once(left, "exit");
  const pid = left.pid ?? 0;
  const mark = { pid, startMark: (await readStartMark(pid)) ?? "" };
  for (const jobId of [id, cancelled]) {
    await service.records.attempts.begin(jobId, "hash");
    await service.records.attempts.recordProcess(jobId, 1, mark);
  }
  await service.records.jobs.cancel(project, cancelled);
  await mkdir(join(service.workDirectory, id), { recursive: true });
  await service.start();
  assert.deepEqual(await exit, [null, "SIGTERM"]);
  assert.equal((await service.ended(cancelled)).job.status, "Cancelled");
  const { job, lines } = await service.ended(id);
  assert.equal(job.status, "Completed");
  assert.match(lines.join("\n"), /attempt 2 of process/);
});

test("a service that was killed leaves processes alone that have got a worker's pid since", async (t) => {
  const service = await startService(t);
  const [id = ""] = await service.create("completes");
  const innocent = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  t.after(() => innocent.kill());
  await service.records.attempts.begin(id, "hash");
  await service.records.attempts.recordProcess(id, 1, {
    pid: innocent.pid ?? 0,
    startMark: "another",
  });
  await service.start();
  assert.equal((await service.ended(id)).job.status, "Completed");
  assert.equal(await isRunning(innocent.pid ?? 0), true);
});

/** The end of a job whose service died so often while it ran. */
async function endAfterDeaths(t: TestContext, deaths: number) {
  const service = await startService(t);
  const [id = ""] = await service.create("completes");
  const { records, workDirectory } = service;
  await mkdir(workDirectory);
  for (let i = 0; i < deaths; i++) {
    await records.attempts.begin(id, `hash-${i}`);
    await resumeUnfinishedJobs(records, { workDirectory, log: (line) => assert.fail(line) });
  }
  await service.start();
  return service.ended(id);
}

test("a job outlives more deaths of its service than it may have failed attempts", async (t) => {
  const { job, lines } = await endAfterDeaths(t, maxDisruptions);
  assert.equal(job.status, "Completed");
  const deaths = lines.filter((line) => line === "The service died while the worker ran");
  assert.equal(deaths.length, maxDisruptions);
});

test("a job that may end its service is not begun again for ever", async (t) => {
  const { job } = await endAfterDeaths(t, maxDisruptions + 1);
  const message = "The service died 13 times while the job ran, which may be the cause";
  assert.deepEqual(job.error, { code: "service_restarted", message });
});

test("a service that is killed in the middle of a batch loses nothing, and leaves no worker", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "local-"));
  const first = await openRecords(join(folder, "records.db"), { now });
  const jobs = ["restarts", "restarts", "completes", "fails"].map((name) =>
    makeNewJob({ model: { source: "https://models.test/m.onnx", name } }),
  );
  const batch = await first.batches.create(project, makeNewBatch({ jobs }));
  await first.close();

  const host = fileURLToPath(new URL("killed-service/main.ts", import.meta.url));
  const killed = spawn(process.execPath, [host, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const acknowledged: string[] = [];
  for await (const line of createInterface(killed.stdout)) {
    if (acknowledged.push(line) === 4) killed.kill("SIGKILL");
  }
  const service = await startService(t, { folder });
  await service.start();
  const ends = await Promise.all(batch.jobs.map((job) => service.ended(job.id)));
  assert.deepEqual(
    ends.map(({ job }) => job.status),
    ["Completed", "Completed", "Completed", "Failed"],
  );
  const lines = ends.flatMap((end) => end.lines);
  for (const line of acknowledged) assert.ok(lines.includes(line), line);
  for (const pid of acknowledged.map((line) => pidIn([line])).filter(Number.isInteger))
    assert.equal(await isRunning(pid), false);
  for (const { job } of ends) {
    const numbers = (await readLog(service.records, job.id)).map((line) => line.seq);
    assert.deepEqual(
      numbers,
      numbers.map((_, i) => i + 1),
    );
  }
  assert.equal((await service.records.batches.find(project, batch.id))?.status, "Failed");
});
