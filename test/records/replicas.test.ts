import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { Client } from "pg";
import { jobSummary } from "../../src/contract/jobs/job-summary.ts";
import { jobQuery } from "../../src/contract/jobs/job-lists.ts";
import { modelSource } from "../../src/contract/models/model-source.ts";
import { openRecords, type Records } from "../../src/records/open-records.ts";
import { postgresMissing } from "../support/cluster/cluster-missing.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { listJobs, makeNewBatch, makeNewJob } from "./new-jobs.ts";
import { until } from "../support/until.ts";

const project = "default";
const now = () => new Date();
const idempotency = {
  project,
  tokenId: "token",
  key: "key",
  hash: "hash",
  seal: (answer: string) => answer,
  unseal: (sealed: string) => sealed,
};

/** Records of two replicas on one server. */
async function openReplicas(t: TestContext) {
  const server = await startPostgres(t);
  const [one, other] = [
    await openRecords(server.url, { now }),
    await openRecords(server.url, { now }),
  ];
  t.after(() => Promise.all([one.close(), other.close()]));
  return { server, one, other };
}

/** The ids that reach a listener. */
function collect(listen: (listener: (id: string) => void) => unknown): Set<string> {
  const ids = new Set<string>();
  listen((id) => ids.add(id));
  return ids;
}

test("a replica hears what another one commits", { skip: postgresMissing }, async (t) => {
  const { one, other } = await openReplicas(t);
  const changed = collect((listener) => other.changes.on("changed", listener));
  const cancelling = collect((listener) => other.changes.on("cancelling", listener));
  const ended = collect((listener) => other.changes.on("ended", listener));
  const [endedHere, endedThere] = [one, other].map(({ changes }) =>
    collect((listener) => changes.on("endedHere", listener)),
  );
  const waiting = new Set<string>();
  other.changes.onRemoteCommit((effects) => effects.waiting.forEach((id) => waiting.add(id)));
  const jobs = Array.from({ length: 350 }, () => makeNewJob());
  const batch = await one.batches.create(project, makeNewBatch({ jobs }));
  await until("all jobs are known", () => waiting.size === 350);
  const [running, idle] = batch.jobs.map(({ id }) => id);
  assert.ok(running !== undefined && idle !== undefined);
  await one.attempts.begin(running, "hash");
  await one.jobs.cancel(project, running);
  await one.jobs.cancel(project, idle);
  await until("both ends are known", () => ended.has(idle) && cancelling.has(running));
  assert.ok([batch.id, running, idle].every((id) => changed.has(id)));
  assert.equal(ended.has(running), false);
  assert.deepEqual([endedHere, endedThere], [new Set([idle]), new Set()]);
});

test(
  "a job has a worker of one replica, whose repeated begin is the same one",
  { skip: postgresMissing },
  async (t) => {
    const { one, other } = await openReplicas(t);
    const { id } = await one.jobs.create(project, makeNewJob());
    const begun = await Promise.all([one.attempts.begin(id, "a"), other.attempts.begin(id, "b")]);
    assert.equal(begun.filter((attempt) => attempt?.attempt === 1).length, 1);
    assert.equal(begun.filter((attempt) => attempt === undefined).length, 1);
    const [first] = begun;
    const again = first ? one.attempts.begin(id, "a") : other.attempts.begin(id, "b");
    assert.equal((await again)?.attempt, 1);
  },
);

test(
  "replicas that write at once lose nothing, and number changes in their order",
  { skip: postgresMissing },
  async (t) => {
    const { one, other } = await openReplicas(t);
    const create = (records: Records) =>
      Promise.all(Array.from({ length: 40 }, () => records.jobs.create(project, makeNewJob())));
    await Promise.all([create(one), create(other)]);
    const { jobs } = await listJobs(one, project, jobQuery.parse({ limit: "100" }));
    assert.equal(jobs.length, 80);
    const { changes } = await other.changeLog.listAfter({ project, origin: {} }, 0);
    assert.deepEqual(
      changes.map(({ seq }) => seq),
      changes.map((_, i) => i + 1),
    );
  },
);

test(
  "of requests with one key that come to two replicas one creates a job",
  { skip: postgresMissing },
  async (t) => {
    const { one, other } = await openReplicas(t);
    const create = (records: Records) =>
      records.jobs.create(project, makeNewJob(), { idempotency });
    const settled = await Promise.allSettled([create(one), create(other)]);
    const [job] = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const [late] = settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    assert.equal(late.answer, JSON.stringify(job));
    const { jobs } = await listJobs(one, project, jobQuery.parse({}));
    assert.deepEqual(
      jobs.map(({ id }) => id),
      [job?.id],
    );
    for (const { idempotency: keys } of [one, other]) {
      assert.equal(await keys.findAnswer(idempotency), JSON.stringify(job));
    }
  },
);

test(
  "one replica leads, and another one when that one is gone",
  { skip: postgresMissing },
  async (t) => {
    const { one, other } = await openReplicas(t);
    assert.deepEqual(
      [one, other].map(({ replica }) => replica.isLeader()),
      [true, false],
    );
    await one.close();
    await until("the other replica leads", () => other.replica.isLeader());
  },
);

test(
  "records of a server that was killed are unavailable, and go on with it",
  { skip: postgresMissing },
  async (t) => {
    const { server, one, other } = await openReplicas(t);
    const job = await one.jobs.create(project, makeNewJob());
    await server.kill();
    await assert.rejects(one.jobs.find(project, job.id), { code: "unavailable" });
    await assert.rejects(one.jobs.create(project, makeNewJob()), {
      code: "unavailable",
      headers: { "retry-after": "1" },
    });
    const missed = new EventTarget();
    other.changes.onGap(() => missed.dispatchEvent(new Event("missed")));
    const notified = once(missed, "missed").then(() => other.replica.isListComplete());
    assert.equal(other.replica.isListComplete(), true);
    await server.restart();
    assert.deepEqual(await one.jobs.find(project, job.id), job);
    await one.jobs.create(project, makeNewJob());
    assert.equal(await notified, false);
    await until("a replica leads", () => one.replica.isLeader() || other.replica.isLeader());
  },
);

test(
  "replicas whose clocks are an hour apart agree on a job, on its times and on what changed",
  { skip: postgresMissing },
  async (t) => {
    const { server, one } = await openReplicas(t);
    const ahead = await openRecords(server.url, { now: () => new Date(Date.now() + 3_600_000) });
    t.after(() => ahead.close());
    const { id } = await ahead.jobs.create(project, makeNewJob());
    const next = await one.jobs.create(project, makeNewJob());
    await one.attempts.begin(id, "hash");
    const at = new Date().toISOString();
    await one.workers.recordEvents(id, 1, [
      { seq: 1, at, type: "status", status: "Sharding" },
      { seq: 2, at, type: "status", status: "Optimizing" },
      { seq: 3, at, type: "result", outcome: "Completed" },
    ]);
    const job = await ahead.jobs.find(project, id);
    assert.equal(job?.status, "Completed");
    const times = job.transitions.map((transition) => transition.at);
    assert.deepEqual([...times, job.finishedAt], [...times.toSorted(), times.at(-1)]);
    const { changes } = await ahead.changeLog.listAfter({ project, origin: {} }, 0);
    const ids = changes.flatMap((change) =>
      change.event === "job" ? jobSummary.parse(JSON.parse(change.data)).id : [],
    );
    assert.deepEqual(ids, [next.id, id]);
  },
);

test(
  "records of a server without a free connection are unavailable, and go on with one",
  { skip: postgresMissing },
  async (t) => {
    const { server, one } = await openReplicas(t);
    const job = await one.jobs.create(project, makeNewJob());
    await using others = new AsyncDisposableStack();
    for (let isFull = false; !isFull;) {
      const client = new Client({ connectionString: server.url });
      isFull = await client.connect().then(
        () => false,
        () => true,
      );
      if (!isFull) others.defer(() => client.end());
    }
    const find = () => one.jobs.find(project, job.id);
    const answers = await Promise.allSettled(Array.from({ length: 20 }, find));
    const refused = answers.filter((answer) => answer.status === "rejected");
    assert.ok(refused.length > 0);
    for (const { reason } of refused) assert.equal(reason.code, "unavailable");
    await others.disposeAsync();
    await until("the records are available", () =>
      find().then(
        () => true,
        () => false,
      ),
    );
    assert.deepEqual(await find(), job);
  },
);

test("the longest sources are recorded", { skip: postgresMissing }, async (t) => {
  const { one } = await openReplicas(t);
  const letters = Array.from({ length: 676 }, (_, i) =>
    String.fromCharCode(0x4e00 + ((i * i * 7919) % 20_000)),
  );
  const data = `https://models.test/${letters.join("")}`;
  assert.ok(modelSource.safeParse(data).success);
  assert.ok(!modelSource.safeParse(`${data}\u4e00`).success);
  const base = makeNewJob({ model: { source: data, name: "d".repeat(100) } });
  const evaluation = { ...base.recipe.evaluation, data };
  const recipe = { ...base.recipe, evaluation };
  const target = { ...base.target, name: "t".repeat(63) };
  const longest = "p".repeat(63);
  const { id } = await one.jobs.create(longest, { ...base, recipe, target });
  const query = { model: data, limit: 1, status: ["Pending" as const] };
  assert.deepEqual(
    (await listJobs(one, longest, query)).jobs.map((job) => job.id),
    [id],
  );
});
