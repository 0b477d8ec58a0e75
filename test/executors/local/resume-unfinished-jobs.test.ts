import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { resumeUnfinishedJobs } from "../../../src/executors/local/resume-unfinished-jobs.ts";
import { makeNewJob, openTestRecords } from "../../records/new-jobs.ts";

/** Whether a job is still worked on after a replica has started that does not see its worker's. */
async function isLeftAlone(t: TestContext, isShared: boolean): Promise<boolean> {
  const workDirectory = await mkdtemp(join(tmpdir(), "resume-"));
  const records = await openTestRecords();
  t.after(() => Promise.all([records.close(), rm(workDirectory, { recursive: true })]));
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash");
  const listRunning = async () => new Set<number>();
  const replica = { ...records.replica, isShared, listRunning };
  await resumeUnfinishedJobs({ ...records, replica }, { workDirectory, log: () => {} });
  const [job] = await records.attempts.listUnfinished();
  return job?.live ?? false;
}

test("a service that is alone runs the jobs again that ran when it ended", async (t) => {
  assert.equal(await isLeftAlone(t, false), false);
});

test("a replica that starts leaves jobs to others that it does not see at once", async (t) => {
  assert.equal(await isLeftAlone(t, true), true);
});

test("what workers keep stays for jobs that go on, and nothing else of their folders", async (t) => {
  const workDirectory = await mkdtemp(join(tmpdir(), "resume-"));
  const records = await openTestRecords();
  t.after(() => Promise.all([records.close(), rm(workDirectory, { recursive: true })]));
  const { id } = await records.jobs.create("default", makeNewJob());
  const { id: other } = await records.jobs.create("default", makeNewJob());
  await records.jobs.cancel("default", other);
  for (const job of [id, other]) {
    await mkdir(join(workDirectory, job, "kept"), { recursive: true });
    await writeFile(join(workDirectory, job, "kept", "weights"), "");
    await mkdir(join(workDirectory, job, "attempt-1"));
  }
  await resumeUnfinishedJobs(records, { workDirectory, log: () => {} });
  const left = await readdir(workDirectory, { recursive: true });
  assert.deepEqual(left.toSorted(), [id, join(id, "kept"), join(id, "kept", "weights")]);
});
