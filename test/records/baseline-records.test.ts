import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Artifact } from "../../src/contract/jobs/artifact.ts";
import type { Job } from "../../src/contract/jobs/job.ts";
import type { Revision } from "../../src/contract/revision.ts";
import type { TelemetryUpdate } from "../../src/contract/worker-protocol/messages.ts";
import type { NewBatch } from "../../src/records/jobs/insert-batch.ts";
import type { NewJob } from "../../src/records/jobs/insert-jobs.ts";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewBatch, makeNewJob, openTestRecords, targets } from "./new-jobs.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const commits = {
  first: "1".repeat(40),
  second: "2".repeat(40),
  third: "3".repeat(40),
  own: "f".repeat(40),
};
const telemetry: TelemetryUpdate = {
  size: { originalBytes: 100, resultBytes: 30, ratio: 0.3, predicted: false },
  accuracy: { level: "outputs", data: "caller", samples: 8, sqnrDb: 30, cosine: 0.99, outputs: [] },
  device: { executionProvider: "cpu", name: "CPU", threads: 2, runtime: "onnxruntime 1" },
};

async function open(t: TestContext): Promise<Records> {
  const records = await openTestRecords();
  t.after(() => records.close());
  return records;
}

async function submit(
  records: Records,
  revision: Partial<Revision> | null,
  overrides: Partial<NewBatch> = {},
): Promise<string> {
  const whole = revision && { sha: commits.own, recordBaseline: false, ...revision };
  const newBatch = makeNewBatch({
    suite: "nightly",
    revision: whole,
    jobs: [makeNewJob()],
    ...overrides,
  });
  return (await records.batches.create(project, newBatch)).id;
}

async function listBatchJobs(records: Records, batch: string): Promise<Job[]> {
  const found = await records.batches.find(project, batch);
  return Promise.all((found?.jobs ?? []).map(async ({ id }) => findJob(records, id)));
}

async function findJob(records: Records, id: string): Promise<Job> {
  const found = await records.jobs.find(project, id);
  assert.ok(found);
  return found;
}

/** Has all jobs of a batch completed. */
async function complete(
  records: Records,
  batch: string,
  { measured = telemetry, artifacts = [] }: Completion = {},
): Promise<Job[]> {
  for (const { id } of await listBatchJobs(records, batch)) {
    await records.attempts.begin(id, "hash");
    await records.workers.recordEvents(id, 1, [
      { seq: 1, at, type: "status", status: "Sharding" },
      { seq: 2, at, type: "status", status: "Optimizing" },
      { seq: 3, at, type: "telemetry", telemetry: measured },
      ...artifacts.map((artifact, index) => {
        return { seq: 4 + index, at, type: "artifact", artifact } as const;
      }),
      { seq: 4 + artifacts.length, at, type: "result", outcome: "Completed" },
    ]);
  }
  return listBatchJobs(records, batch);
}

interface Completion {
  readonly measured?: TelemetryUpdate;
  readonly artifacts?: readonly Artifact[] | undefined;
}

/** Records baselines of a commit of a branch; gives the jobs. */
async function recordCommit(
  records: Records,
  sha: string,
  { branch = "main", artifacts, ...overrides }: CommitOptions = {},
) {
  const batch = await submit(records, { sha, branch, recordBaseline: true }, overrides);
  return complete(records, batch, { artifacts });
}

interface CommitOptions extends Partial<NewBatch> {
  readonly branch?: string;
  readonly artifacts?: readonly Artifact[] | undefined;
}

const files = [
  { name: "model-00001-of-00001.bin", kind: "weights", bytes: 5, sha256: "b".repeat(64) },
  { name: "report.json", kind: "report", bytes: 2, sha256: "c".repeat(64) },
  { name: "model.onnx", kind: "model", bytes: 3, sha256: "a".repeat(64) },
] as const;

/** What the only job of a new batch is compared with. */
async function findBaseline(
  records: Records,
  base: Revision["base"],
  overrides: Partial<NewBatch> = {},
) {
  const [made] = await listBatchJobs(records, await submit(records, { base }, overrides));
  return made?.baseline && { sha: made.baseline.sha, by: made.baseline.by };
}

test("a batch that is to record baselines makes them of what its completed jobs measured", async (t) => {
  const records = await open(t);
  const [recorded] = await recordCommit(records, commits.first);
  const [job] = await listBatchJobs(
    records,
    await submit(records, { base: { branch: "main", sha: commits.first } }),
  );
  const { size, device } = telemetry;
  assert.deepEqual(job?.baseline, {
    jobId: recorded?.id,
    sha: commits.first,
    branch: "main",
    by: "baseSha",
    size,
    device,
    accuracy: { level: "outputs", data: "caller", samples: 8, sqnrDb: 30, cosine: 0.99 },
  });
});

test("a worker gets the baseline's files where a gate compares their latency", async (t) => {
  const records = await open(t);
  await recordCommit(records, commits.first, { artifacts: files });
  for (const [gateLimits, expected] of [
    [{ maxLatencyRegression: 0.05 }, [files[2], files[0]]],
    [{ maxSizeRegression: 0.05 }, undefined],
  ] as const) {
    const jobs = [makeNewJob({ gateLimits })];
    const [job] = await listBatchJobs(
      records,
      await submit(records, { base: { branch: "main", sha: commits.first } }, { jobs }),
    );
    await records.attempts.begin(job?.id ?? "", "hash");
    const assignment = await records.workers.findAssignment(job?.id ?? "", 1);
    const wanted = expected?.map(({ name, sha256 }) => ({ name, sha256 })) ?? null;
    assert.deepEqual(assignment?.baseline, wanted);
  }
});

test("a commit's baseline of another branch is not compared with", async (t) => {
  const records = await open(t);
  await recordCommit(records, commits.first, { branch: "slow" });
  const { first: sha, third } = commits;
  const base = { branch: "main", sha, mergeBase: sha };
  assert.equal(await findBaseline(records, base), null);
  await recordCommit(records, third);
  assert.deepEqual(await findBaseline(records, base), { sha: third, by: "branch" });
});

test("a baseline is found by the base's commit, the merge base, the newest of the branch, in that order", async (t) => {
  const records = await open(t);
  await recordCommit(records, commits.first);
  await recordCommit(records, commits.second);
  await recordCommit(records, commits.third);
  const { first: sha, second: mergeBase, third, own: unknown } = commits;
  const branch = "main";
  assert.deepEqual(await findBaseline(records, { branch, sha, mergeBase }), { sha, by: "baseSha" });
  assert.deepEqual(await findBaseline(records, { branch, sha: unknown, mergeBase }), {
    sha: mergeBase,
    by: "mergeBase",
  });
  const newest = { sha: third, by: "branch" };
  assert.deepEqual(
    await findBaseline(records, { branch, sha: unknown, mergeBase: unknown }),
    newest,
  );
  assert.deepEqual(await findBaseline(records, { branch }), newest);
  assert.equal(await findBaseline(records, { branch: "other", sha: unknown }), null);
  assert.equal(await findBaseline(records, undefined), null);
});

test("a baseline is that of the same suite, model, target and project", async (t) => {
  const records = await open(t);
  await recordCommit(records, commits.first);
  const base = { branch: "main", sha: commits.first };
  const [, otherTarget] = targets;
  assert.ok(otherTarget);
  const model = { source: "https://models.test/detector.onnx", name: "other.onnx" };
  assert.equal(await findBaseline(records, base, { suite: "weekly" }), null);
  assert.equal(await findBaseline(records, base, { suite: null }), null);
  assert.equal(await findBaseline(records, base, { jobs: [makeNewJob({ model })] }), null);
  assert.equal(
    await findBaseline(records, base, { jobs: [makeNewJob({ target: otherTarget })] }),
    null,
  );
  const newBatch = makeNewBatch({
    suite: "nightly",
    revision: { sha: commits.own, base, recordBaseline: false },
  });
  const { jobs } = await records.batches.create("other", newBatch);
  assert.equal((await records.jobs.find("other", jobs[0]?.id ?? ""))?.baseline, null);
});

const source = "https://models.test/a.onnx";
const unrecorded: readonly [string, Partial<NewJob>, Partial<Revision>][] = [
  ["whose batch is not to record any", {}, { recordBaseline: false }],
  ["with a gate that failed", { gateLimits: { maxSizeRatio: 0.2 } }, {}],
  ["that only planned", { dryRun: true }, {}],
];

for (const [what, newJob, revision] of unrecorded) {
  test(`a job ${what} becomes no baseline`, async (t) => {
    const records = await open(t);
    const wanted = { sha: commits.first, branch: "main", recordBaseline: true, ...revision };
    await complete(records, await submit(records, wanted, { jobs: [makeNewJob(newJob)] }));
    assert.equal(await findBaseline(records, { branch: "main", sha: commits.first }), null);
  });
}

test("a job that failed or was cancelled becomes no baseline, others of its batch do", async (t) => {
  const records = await open(t);
  const names = ["fails", "goes", "works"];
  const jobs = names.map((name) => makeNewJob({ model: { source, name } }));
  const batch = await submit(
    records,
    { sha: commits.first, branch: "main", recordBaseline: true },
    { jobs },
  );
  const [fails, goes] = await listBatchJobs(records, batch);
  assert.ok(fails && goes);
  await records.attempts.begin(fails.id, "hash");
  await records.attempts.end(fails.id, 1, {
    error: { code: "worker_killed", message: "Killed" },
    lines: [],
  });
  await records.jobs.cancel(project, goes.id);
  await complete(records, batch);
  const compared = await listBatchJobs(
    records,
    await submit(records, { base: { branch: "main" } }, { jobs }),
  );
  assert.deepEqual(
    compared.map(({ model, baseline }) => [model.name, baseline !== null]),
    [
      ["fails", false],
      ["goes", false],
      ["works", true],
    ],
  );
});

test("a job with a gate that only warns becomes a baseline, as the first of a suite has to", async (t) => {
  const records = await open(t);
  const jobs = [makeNewJob({ gateLimits: { maxSizeRegression: 0.05 } })];
  const [job] = await recordCommit(records, commits.first, { jobs });
  assert.deepEqual(
    job?.gates.map(({ level, passed }) => [level, passed]),
    [["warn", false]],
  );
  assert.deepEqual(await findBaseline(records, { branch: "main" }), {
    sha: commits.first,
    by: "branch",
  });
});

test("a model that became larger than its baseline fails its gate and its batch counts it", async (t) => {
  const records = await open(t);
  await recordCommit(records, commits.first);
  const jobs = [makeNewJob({ gateLimits: { maxSizeRegression: 0.05 } })];
  const batch = await submit(records, { base: { branch: "main" } }, { jobs });
  const size = { originalBytes: 100, resultBytes: 33, ratio: 0.33, predicted: false };
  const [job] = await complete(records, batch, { measured: { ...telemetry, size } });
  assert.deepEqual(job?.gates, [
    {
      gate: "maxSizeRegression",
      limit: 0.05,
      level: "fail",
      actual: 0.1,
      baseline: 30,
      passed: false,
    },
  ]);
  assert.equal(job.statusReason, "gates_failed");
  assert.equal((await records.batches.find(project, batch))?.gatesFailed, 1);
});

test("what a job is compared with does not change after it was made", async (t) => {
  const records = await open(t);
  await recordCommit(records, commits.first);
  const batch = await submit(records, { base: { branch: "main" } });
  await recordCommit(records, commits.second);
  const [job] = await complete(records, batch);
  assert.equal(job?.baseline?.sha, commits.first);
});

test("a commit that is measured again has the later job's baseline, whichever ends first", async (t) => {
  const records = await open(t);
  const again = { sha: commits.first, branch: "main", recordBaseline: true };
  const [earlier, later] = [await submit(records, again), await submit(records, again)];
  const [last] = await complete(records, later);
  await complete(records, earlier);
  const [job] = await listBatchJobs(
    records,
    await submit(records, { base: { branch: "main", sha: commits.first } }),
  );
  assert.equal(job?.baseline?.jobId, last?.id);
});

test("baselines.accept() makes a batch what its base is compared with, whatever its gates say", async (t) => {
  const records = await open(t);
  const base = { branch: "main", sha: commits.first };
  await recordCommit(records, commits.first);
  const jobs = [makeNewJob({ gateLimits: { maxSizeRatio: 0.1 } })];
  const batch = await submit(records, { base }, { jobs });
  const [accepted] = await complete(records, batch);
  assert.equal(accepted?.statusReason, "gates_failed");
  assert.equal(await records.baselines.accept("other", batch), 0);
  assert.equal(await records.baselines.accept(project, batch), 1);
  const [next] = await listBatchJobs(records, await submit(records, { base }));
  assert.deepEqual([next?.baseline?.jobId, next?.baseline?.sha], [accepted.id, commits.first]);
});

test("baselines.accept() takes nothing of batches that have no suite or branch, or nothing completed", async (t) => {
  const records = await open(t);
  const base = { branch: "main" };
  const batches = [
    await submit(records, { base }, { suite: null }),
    await submit(records, null),
    await submit(records, {}),
  ];
  for (const batch of batches) {
    await complete(records, batch);
    assert.equal(await records.baselines.accept(project, batch), 0);
  }
  assert.equal(await records.baselines.accept(project, await submit(records, { base })), 0);
});

for (const [whose, repository, isRecorded] of [
  ["a repository", "123", false],
  ["no repository", null, true],
] as const) {
  test(`a batch that was created as a resource, in a suite of ${whose}`, async (t) => {
    const records = await open(t);
    const origin = repository === null ? null : { repository, commit: commits.first };
    const [recorded] = await recordCommit(records, commits.first, { origin });
    const resource = { namespace: "models", name: "theirs", uid: "uid", isSource: true };
    const id = `batch-${"9".repeat(26)}`;
    const revision = { sha: commits.second, branch: "main", recordBaseline: true };
    const newBatch = makeNewBatch({
      id,
      suite: "nightly",
      revision,
      resource,
      jobs: [makeNewJob()],
    });
    await records.cluster.createBatch(project, newBatch);
    await records.cluster.linkBatchResource(id, { ...resource, uid: "restored" });
    const [job] = await complete(records, id);
    assert.deepEqual(
      job?.telemetry.warnings.map(({ code }) => code),
      isRecorded ? [] : ["baseline_not_recorded"],
    );
    const newest = await findBaseline(records, { branch: "main" });
    assert.equal(newest?.sha, isRecorded ? commits.second : commits.first);
    assert.deepEqual(recorded?.telemetry.warnings, []);
  });
}
