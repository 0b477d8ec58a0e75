import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import { openRecords } from "../../src/records/open-records.ts";
import { countRows } from "../../src/records/database/table-keys.ts";
import { keptDatabase } from "../support/test-database.ts";
import { makeNewJob } from "./new-jobs.ts";
import { readLog } from "./read-log.ts";
import { logEvent } from "./recorded-worker.ts";

const at = "2026-03-01T00:00:00.000Z";
const minuteMs = 60_000;

/** Records of one job with these lines, whose clock `pass()` advances. */
async function recordsWithLog(t: TestContext, texts: readonly string[]) {
  let time = Date.parse(at);
  const database = await keptDatabase(t);
  const records = await openRecords(database, { now: () => new Date(time++) });
  t.after(() => records.close());
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash");
  const lines = texts.map((text, i) => logEvent(i + 1, text));
  for (let start = 0; start < lines.length; start += 1000) {
    await records.workers.recordEvents(id, 1, lines.slice(start, start + 1000));
  }
  const end = async (): Promise<void> => {
    const seq = lines.length;
    const events: WorkerEvent[] = [
      { seq: seq + 1, at, type: "status", status: "Sharding" },
      { seq: seq + 2, at, type: "status", status: "Optimizing" },
      { seq: seq + 3, at, type: "result", outcome: "Completed" },
    ];
    await records.workers.recordEvents(id, 1, events);
  };
  return { records, id, database, end, pass: (minutes: number) => (time += minutes * minuteMs) };
}

type LoggedRecords = Awaited<ReturnType<typeof recordsWithLog>>;

/** What readers see of a log. */
async function readEverything({ records, id }: LoggedRecords) {
  const { logs } = records;
  const count = (await readLog(records, id)).length;
  const ranges = [
    { after: 0, before: 7, limit: 3 },
    { after: 0, before: 7, limit: 500 },
    { after: 2, before: 5, limit: 500 },
    { after: 0, before: count, limit: 500 },
    { after: 0, before: Number.MAX_SAFE_INTEGER, limit: 120 },
    { after: count - 3, before: Number.MAX_SAFE_INTEGER, limit: 500 },
    { after: 3, before: 4, limit: 500 },
  ];
  return {
    lines: await readLog(records, id),
    next: (await logs.readPage(id, count - 2))[0],
    end: await logs.readPage(id, Number.MAX_SAFE_INTEGER),
    tail: await logs.tail(id, 5),
    pages: await Promise.all(ranges.map((range) => logs.readPageBefore(id, range))),
  };
}

async function countUnpacked(database: string): Promise<number> {
  const { db, close } = await openDatabase(database, new Changes());
  const rows = await countRows(db, "log_lines");
  await close();
  return Number(rows);
}

const logs = {
  "no line": [],
  "one line": ["only"],
  "many short lines": Array.from({ length: 12_000 }, (_, i) => `line ${i + 1}`),
  "long lines": Array.from({ length: 30 }, (_, i) => `${i} é `.repeat(12_000)),
};

for (const [name, texts] of Object.entries(logs)) {
  test(`a log of ${name} reads the same once it is packed`, async (t) => {
    const logged = await recordsWithLog(t, texts);
    const before = await readEverything(logged);
    assert.deepEqual(
      before.lines.map(({ text }) => text),
      texts,
    );
    await logged.end();
    logged.pass(11);
    await logged.records.logs.pack();
    assert.equal(await countUnpacked(logged.database), 0);
    assert.deepEqual(await readEverything(logged), before);
  });
}

test("the log of a job that runs, or ended a moment ago, is not packed", async (t) => {
  const logged = await recordsWithLog(t, ["one", "two"]);
  await logged.records.logs.pack();
  await logged.end();
  logged.pass(9);
  await logged.records.logs.pack();
  assert.equal(await countUnpacked(logged.database), 2);
});

test("a reader in the middle of a log that is packed goes on", async (t) => {
  const logged = await recordsWithLog(t, logs["many short lines"]);
  const { records, id } = logged;
  await logged.end();
  logged.pass(11);
  const read: string[] = [];
  let packing: Promise<void> | undefined;
  for (let after = 0; ;) {
    const page = await records.logs.readPage(id, after);
    packing ??= records.logs.pack();
    if (page.length === 0) break;
    read.push(...page.map(({ text }) => text));
    after = page.at(-1)?.seq ?? after;
  }
  await packing;
  assert.deepEqual(read, logs["many short lines"]);
});

test("a packed log is deleted with its job, and when it expires", async (t) => {
  const [kept, deleted] = [await recordsWithLog(t, ["a"]), await recordsWithLog(t, ["a"])];
  for (const logged of [kept, deleted]) {
    await logged.end();
    logged.pass(11);
    await logged.records.logs.pack();
  }
  await deleted.records.deletions.deleteJob({ project: "default", id: deleted.id });
  assert.deepEqual(await readLog(deleted.records, deleted.id), []);
  kept.pass(3 * 24 * 60);
  await kept.records.deleteExpired({ logs: 1 });
  assert.deepEqual(await readLog(kept.records, kept.id), []);
});
