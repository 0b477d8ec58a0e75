import assert from "node:assert/strict";
import test from "node:test";
import { followReplicas } from "../../../src/executors/local/follow-replicas.ts";
import { makeNewJob, openTestRecords } from "../../records/new-jobs.ts";
import { until } from "../../support/until.ts";

test("jobs of a replica are taken over once it is gone, not while it may reconnect", async (t) => {
  const records = await openTestRecords();
  t.after(() => records.close());
  const { id } = await records.jobs.create("default", makeNewJob());
  await records.attempts.begin(id, "hash");
  let [looks, isListComplete] = [0, false];
  const replica = {
    ...records.replica,
    isLeader: () => ++looks > 0,
    listRunning: async () => new Set<number>(),
    isListComplete: () => isListComplete,
  };
  const takenWhileKnown: boolean[] = [];
  const jobs = {
    add: () => takenWhileKnown.push(isListComplete),
    remove: () => {},
    listRunning: () => [],
    stop: () => {},
  };
  t.mock.timers.enable({ apis: ["setInterval"] });
  const following = followReplicas(jobs, { records: { ...records, replica }, log: () => {} });
  t.after(() => following.close());
  const lookAgain = async () => {
    const before = looks;
    t.mock.timers.tick(5_000);
    await until("others are looked for", () => looks > before);
  };
  for (let i = 0; i < 4; i++) await lookAgain();
  isListComplete = true;
  while (takenWhileKnown.length === 0) await lookAgain();
  assert.deepEqual(takenWhileKnown, [true]);
  const [job] = await records.attempts.listUnfinished();
  assert.equal(job?.live, false);
});
