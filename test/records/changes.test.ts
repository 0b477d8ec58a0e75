import assert from "node:assert/strict";
import { test } from "node:test";
import { Changes, noChanges } from "../../src/records/database/changes.ts";
import { makeNewBatch, makeNewJob, openTestRecords } from "./new-jobs.ts";

function changed(...ids: string[]) {
  return { ...noChanges(), changed: new Set(ids) };
}

test("changes.watch() yields at once and after each change of what is watched", async () => {
  const changes = new Changes();
  const watch = changes.watch("job-a", new AbortController().signal);
  assert.equal((await watch.next()).done, false);
  let woken = 0;
  const next = watch.next().then(() => woken++);
  changes.publish(changed("job-b"));
  await Promise.resolve();
  assert.equal(woken, 0);
  changes.publish(changed("job-a"));
  await next;
  assert.equal(woken, 1);
  await watch.return(undefined);
});

test("changes.watch() yields changes that came while the reader was busy as one", async () => {
  const changes = new Changes();
  const stop = new AbortController();
  const watch = changes.watch("job-a", stop.signal);
  await watch.next();
  changes.publish(changed("job-a"));
  changes.publish(changed("job-a"));
  assert.equal((await watch.next()).done, false);
  const after = watch.next();
  stop.abort();
  assert.equal((await after).done, true);
});

test("changes.watch() ends for a signal that was aborted before", async () => {
  const watch = new Changes().watch("job-a", AbortSignal.abort());
  assert.equal((await watch.next()).done, true);
});

test("changes notify watchers of a batch when one of its jobs moves", async () => {
  const records = await openTestRecords();
  const batch = await records.batches.create("default", makeNewBatch());
  const watch = records.changes.watch(batch.id, new AbortController().signal);
  await watch.next();
  const next = watch.next();
  await records.jobs.cancel("default", batch.jobs[0]?.id ?? "");
  assert.equal((await next).done, false);
  assert.equal((await records.batches.find("default", batch.id))?.counts.Cancelled, 1);
  await watch.return(undefined);
  await records.close();
});

test("changes.on() calls back for every job and batch, until it is ended", async () => {
  const records = await openTestRecords();
  const changed = new Set<string>();
  const stop = records.changes.on("changed", (id) => changed.add(id));
  const batch = await records.batches.create("default", makeNewBatch());
  const [first, second] = batch.jobs;
  await records.jobs.cancel("default", first?.id ?? "");
  assert.deepEqual(changed, new Set([first?.id, batch.id]));
  stop();
  await records.jobs.cancel("default", second?.id ?? "");
  assert.equal(changed.has(second?.id ?? ""), false);
  await records.close();
});

test("a webhook that has something to send is not a job or batch that changed", async () => {
  const records = await openTestRecords();
  const request = { url: "https://receiver.example/", description: "", secret: "whsec_" };
  const { id } = await records.webhooks.create("default", { ...request, events: ["job.*"] }, {});
  const [changed, sending] = [new Set<string>(), new Set<string>()];
  records.changes.on("changed", (each) => changed.add(each));
  records.changes.on("sending", (each) => sending.add(each));
  const job = await records.jobs.create("default", makeNewJob());
  await records.jobs.cancel("default", job.id);
  assert.deepEqual([...sending], [id]);
  assert.deepEqual([...changed], [job.id]);
  await records.close();
});
