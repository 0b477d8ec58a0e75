import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { jobQuery } from "../../src/contract/jobs/job-lists.ts";
import { job as jobSchema } from "../../src/contract/jobs/job.ts";
import { limits } from "../../src/contract/limits.ts";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { keptDatabase } from "../support/test-database.ts";
import { parseJob } from "../../src/records/jobs/find-record.ts";
import type { NewJob } from "../../src/records/jobs/insert-jobs.ts";
import { statusCause } from "../../src/contract/jobs/status-reasons.ts";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import { numbered } from "./shared-job.ts";
import { listJobs, makeNewBatch, makeNewJob, openTestRecords, targets } from "./new-jobs.ts";

const project = "default";

async function recordsWith(jobs: readonly Partial<NewJob>[]) {
  const records = await openTestRecords();
  const created = [];
  for (const job of jobs) created.push(await records.jobs.create(project, makeNewJob(job)));
  return { records, ids: created.map((job) => job.id) };
}

test("jobs.create() keeps the job as the contract has it", async () => {
  const { records, ids } = await recordsWith([
    { labels: { team: "vision" }, gateLimits: { minCosine: 0.99 } },
  ]);
  const found = await records.jobs.find(project, ids[0] ?? "");
  assert.deepEqual(jobSchema.parse(found), found);
  assert.equal(found?.status, "Pending");
  assert.deepEqual(found.labels, { team: "vision" });
  assert.deepEqual(found.gateLimits, { minCosine: 0.99 });
  await records.close();
});

test("jobs.create() keeps whether a job only plans, for its worker too", async () => {
  const { records, ids } = await recordsWith([{ dryRun: true }, { dryRun: false }]);
  const found = await Promise.all(ids.map((id) => records.jobs.find(project, id)));
  for (const id of ids) await records.attempts.begin(id, "hash");
  const assigned = await Promise.all(ids.map((id) => records.workers.findAssignment(id, 1)));
  assert.deepEqual(
    [...found, ...assigned].map((document) => document?.dryRun),
    [true, false, true, false],
  );
  await records.close();
});

test("workers.findEarlierCosts() says what jobs of the same model and recipe took, the newest first", async () => {
  const recipe = { ...defaultRecipe, scheme: "fp16" } as const;
  const { records, ids } = await recordsWith([{}, {}, { dryRun: true }, { recipe }, {}]);
  const seconds = [10, 30, undefined, 900];
  const size = { originalBytes: 1000, resultBytes: 500, ratio: 0.5, predicted: false };
  for (const [index, id] of ids.entries()) {
    await records.attempts.begin(id, "hash");
    const taken = seconds[index];
    const usage = taken && { peakMemoryBytes: 1, diskBytes: 2, seconds: taken };
    await records.workers.recordEvents(
      id,
      1,
      numbered(
        1,
        { type: "status", status: "Optimizing" },
        { type: "telemetry", telemetry: usage ? { size, usage } : { size } },
        ...(index < seconds.length ? [{ type: "result", outcome: "Completed" } as const] : []),
      ),
    );
  }
  assert.deepEqual(
    await records.workers.findEarlierCosts(ids.at(-1) ?? ""),
    [30, 10].map((taken) => ({
      originalBytes: 1000,
      peakMemoryBytes: 1,
      diskBytes: 2,
      seconds: taken,
    })),
  );
  await records.close();
});

test("a job that was recorded before there were dry runs is not one", async () => {
  const { records, ids } = await recordsWith([{}]);
  const { dryRun, ...older } = jobSchema.parse(await records.jobs.find(project, ids[0] ?? ""));
  const size = { originalBytes: 100, resultBytes: 40, ratio: 0.4 };
  const read = parseJob(JSON.stringify({ ...older, telemetry: { ...older.telemetry, size } }));
  assert.deepEqual([read.dryRun, read.telemetry.size?.predicted], [dryRun, false]);
  await records.close();
});

test("jobs.find() does not show a job to another project", async () => {
  const { records, ids } = await recordsWith([{}]);
  assert.equal(await records.jobs.find("other", ids[0] ?? ""), undefined);
  assert.equal(await records.jobs.cancel("other", ids[0] ?? ""), undefined);
  assert.deepEqual((await listJobs(records, "other", jobQuery.parse({}))).jobs, []);
  await records.close();
});

test("jobs.list() pages from the newest to the oldest, each job once", async () => {
  const { records, ids } = await recordsWith(Array.from({ length: 7 }, () => ({})));
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listJobs(records, project, jobQuery.parse({ limit: "3", cursor }));
    seen.push(...page.jobs.map((job) => job.id));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  assert.deepEqual(seen, ids.toReversed());
  await records.close();
});

test("jobs.list() keeps its place while jobs are added", async () => {
  const { records, ids } = await recordsWith([{}, {}, {}]);
  const first = await listJobs(records, project, jobQuery.parse({ limit: "2" }));
  await records.jobs.create(project, makeNewJob());
  const second = await listJobs(
    records,
    project,
    jobQuery.parse({ limit: "2", cursor: first.nextCursor }),
  );
  assert.deepEqual(
    second.jobs.map((job) => job.id),
    [ids[0]],
  );
  assert.equal(second.nextCursor, null);
  await records.close();
});

test("models are listed that one of the newest 10,000 jobs names", async (t) => {
  const database = await keptDatabase(t);
  const records = await openRecords(database, { now: () => new Date() });
  await records.jobs.create(project, makeNewJob());
  const { db, close } = await openDatabase(database, new Changes());
  t.after(close);
  const row = await db.selectFrom("jobs").selectAll().executeTakeFirstOrThrow();
  const names = Object.keys(row);
  const copied = new Map([
    ["id", sql`'job-1' || (1000000000 + n)`],
    ["model_name", sql`'copied'`],
  ]);
  const values = names.map((name) => copied.get(name) ?? sql.ref(`jobs.${name}`));
  await sql`insert into jobs (${sql.join(names.map((name) => sql.ref(name)))})
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers
      where n < ${limits.countedJobs})
    select ${sql.join(values)} from jobs, numbers`.execute(db);
  const versions = await records.jobs.listModelVersions(project);
  assert.deepEqual(
    versions.map(({ name, jobs }) => [name, jobs]),
    [["copied", limits.countedJobs]],
  );
  await records.close();
});

for (const cursor of ["", "nonsense", Buffer.from("batch-0").toString("base64url"), "' or 1=1"]) {
  test(`jobs.list() refuses the cursor "${cursor}"`, async () => {
    const records = await openTestRecords();
    await assert.rejects(listJobs(records, project, jobQuery.parse({ cursor })), {
      code: "invalid_cursor",
    });
    await assert.rejects(listJobs(records, project, jobQuery.parse({ cursor, label: ["a"] })), {
      code: "invalid_cursor",
    });
    await records.close();
  });
}

test("jobs.list() has a job once that goes from one listed status to another meanwhile", async () => {
  const { records, ids } = await recordsWith([{}]);
  const [id = ""] = ids;
  const query = jobQuery.parse({ status: ["Optimizing", "Pending"] });
  const begun = { type: "status", status: "Optimizing" } as const;
  const waits = { type: "waiting", interrupts: true, ...statusCause("interrupted") } as const;
  const stop = new AbortController();
  const changing = (async () => {
    while (!stop.signal.aborted) {
      await records.cluster.recordEvents(id, [begun]);
      await records.cluster.recordEvents(id, [waits]);
    }
  })();
  const found = new Set<string>();
  for (let i = 0; i < 100; i++) {
    const { jobs } = await listJobs(records, project, query);
    const counts = await records.jobs.count(project, query);
    found.add(`${jobs.length} of ${counts.Pending + counts.Optimizing}`);
  }
  stop.abort();
  await changing;
  assert.deepEqual([...found], ["1 of 1"]);
  await records.close();
});

test("jobs.list() filters by each field, alone and together", async () => {
  const other = targets[1];
  assert.ok(other);
  const onyx = { source: "file:///models/onyx.onnx", name: "onyx.onnx" };
  const { records, ids } = await recordsWith([
    { kind: "quantize", labels: { team: "vision", stage: "a" } },
    { target: other, labels: { team: "vision", stage: "b" } },
    { model: onyx, labels: { team: "speech" } },
    {},
  ]);
  await records.jobs.cancel(project, ids[3] ?? "");
  const cases: readonly [query: object, want: readonly number[]][] = [
    [{ kind: "quantize" }, [0]],
    [{ target: other.name }, [1]],
    [{ model: "onyx.onnx" }, [2]],
    [{ model: "file:///models/onyx.onnx" }, [2]],
    [{ model: "detector.onnx" }, [3, 1, 0]],
    [{ status: ["Cancelled"] }, [3]],
    [{ status: ["Cancelled", "Pending", "Pending"] }, [3, 2, 1, 0]],
    [{ status: ["Completed"] }, []],
    [{ label: ["team"] }, [2, 1, 0]],
    [{ label: ["team=vision"] }, [1, 0]],
    [{ label: ["team=vision", "stage=b"] }, [1]],
    [{ label: ["team", "stage"] }, [1, 0]],
    [{ label: ["team="] }, []],
    [{ status: ["Pending"], label: ["team=vision"], kind: "quantize" }, [0]],
    [{ status: ["Cancelled", "Pending"], model: "detector.onnx", target: "cpu" }, [3, 0]],
  ];
  for (const [query, want] of cases) {
    const { jobs } = await listJobs(records, project, jobQuery.parse(query));
    assert.deepEqual(
      jobs.map((job) => ids.indexOf(job.id)),
      want,
      JSON.stringify(query),
    );
  }
  await records.close();
});

test("jobs.list() takes the bounds of a range of creation times out", async () => {
  const { records, ids } = await recordsWith([{}, {}, {}]);
  const [first, middle, last] = await Promise.all(ids.map((id) => records.jobs.find(project, id)));
  const list = async (query: object) => {
    const { jobs } = await listJobs(records, project, jobQuery.parse(query));
    return jobs.map((job) => ids.indexOf(job.id));
  };
  assert.deepEqual(await list({ createdAfter: first?.createdAt }), [2, 1]);
  assert.deepEqual(await list({ createdBefore: last?.createdAt }), [1, 0]);
  assert.deepEqual(
    await list({ createdAfter: first?.createdAt, createdBefore: last?.createdAt }),
    [1],
  );
  assert.deepEqual(
    await list({ createdAfter: middle?.createdAt, createdBefore: middle?.createdAt }),
    [],
  );
  assert.deepEqual(await list({ createdAfter: "0001-01-01T00:00:00Z" }), [2, 1, 0]);
  await records.close();
});

test("jobs.list() lists the jobs of a batch", async () => {
  const { records } = await recordsWith([{}]);
  const batch = await records.batches.create(project, makeNewBatch());
  const { jobs } = await listJobs(records, project, jobQuery.parse({ batch: batch.id }));
  assert.deepEqual(new Set(jobs.map((job) => job.id)), new Set(batch.jobs.map((job) => job.id)));
  await records.close();
});

test("jobs.cancel() ends a waiting job at once, and again without effect", async () => {
  const { records, ids } = await recordsWith([{}]);
  const cancelled = await records.jobs.cancel(project, ids[0] ?? "");
  assert.equal(cancelled?.status, "Cancelled");
  assert.deepEqual(
    cancelled.transitions.map((transition) => transition.status),
    ["Pending", "Cancelling", "Cancelled"],
  );
  assert.deepEqual(await records.jobs.cancel(project, ids[0] ?? ""), cancelled);
  await records.close();
});

test("jobs.cancel() asks the executor to stop the worker of a job that is worked on", async () => {
  const { records, ids } = await recordsWith([{}]);
  const [id = ""] = ids;
  const asked: string[] = [];
  records.changes.on("cancelling", (jobId) => asked.push(jobId));
  await records.attempts.begin(id, "hash");
  assert.equal((await records.jobs.cancel(project, id))?.status, "Cancelling");
  assert.equal((await records.jobs.cancel(project, id))?.status, "Cancelling");
  assert.deepEqual(asked, [id]);
  await records.attempts.end(id, 1, {
    error: { code: "worker_killed", message: "Killed" },
    lines: [],
  });
  assert.equal((await records.jobs.find(project, id))?.status, "Cancelled");
  await records.close();
});

test("jobs.cancel() refuses a job that has failed", async () => {
  const { records, ids } = await recordsWith([{}]);
  const [id = ""] = ids;
  await records.attempts.begin(id, "hash");
  await records.attempts.end(id, 1, {
    error: { code: "worker_killed", message: "Killed" },
    lines: [],
  });
  await assert.rejects(records.jobs.cancel(project, id), {
    code: "job_finished",
    message: `Job "${id}" cannot be cancelled: it is Failed`,
  });
  await records.close();
});
