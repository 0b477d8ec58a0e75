import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { defaultRecipe } from "../../src/contract/jobs/resolve-recipe.ts";
import type { UnnumberedEvent, WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import type { Records } from "../../src/records/open-records.ts";
import { makeNewJob, openTestRecords } from "./new-jobs.ts";
import { readLog } from "./read-log.ts";

const project = "default";
const at = "2026-03-01T00:00:00.000Z";
const shares = 3;

function podEvents(pod: string, index: number): WorkerEvent[] {
  const events: UnnumberedEvent[] = [
    { type: "status", status: "Optimizing" },
    { type: "log", stream: "stdout", text: `${pod} begins` },
    {
      type: "telemetry",
      telemetry: { progress: { fraction: 0.5 }, stageSeconds: { optimize: index + 1 } },
    },
    { type: "share", share: { index, sha256: String(index).repeat(64), bytes: index } },
    { type: "log", stream: "stdout", text: `${pod} ends` },
    { type: "result", outcome: "Completed" },
  ];
  return events.map((event, i) => ({ ...event, seq: i + 1, at }));
}

/** One pod after the other of a share: those before the last are lost at some point, and what they reported may come again. */
const anyPods = fc.array(fc.array(fc.nat({ max: 6 }), { maxLength: 2 }), {
  minLength: shares,
  maxLength: shares,
});
/** Which share's pod reports next, from which event, and how many. */
const anyDeliveries = fc.array(
  fc.record({
    share: fc.nat({ max: shares - 1 }),
    from: fc.nat({ max: 6 }),
    count: fc.nat({ max: 6 }),
  }),
  {
    maxLength: 40,
  },
);

interface Pod {
  readonly attempt: number;
  readonly events: readonly WorkerEvent[];
}

async function beginPod(records: Records, id: string, index: number, number: number): Promise<Pod> {
  const podUid = `share ${index} pod ${number}`;
  const attempt = await records.attempts.beginPodAttempt(id, {
    podUid,
    part: { step: "optimize", index },
  });
  assert(attempt !== undefined);
  return { attempt, events: podEvents(podUid, index) };
}

async function applyEvents(records: Records, id: string, { attempt, events }: Pod): Promise<void> {
  if (events.length > 0) await records.workers.recordEvents(id, attempt, events);
}

/** Lets pods begin that are lost when they have reported so many of their events. */
async function losePods(
  records: Records,
  id: string,
  losses: readonly (readonly number[])[],
): Promise<Pod[]> {
  const lost: Pod[] = [];
  for (const [index, lengths] of losses.entries()) {
    for (const [number, length] of lengths.entries()) {
      const pod = await beginPod(records, id, index, number);
      await applyEvents(records, id, { ...pod, events: pod.events.slice(0, length) });
      await records.attempts.end(id, pod.attempt, { error: null, lines: [] });
      lost.push(pod);
    }
  }
  return lost;
}

async function checkLines(records: Records, id: string, pods: readonly Pod[]): Promise<void> {
  const texts = (await readLog(records, id)).map(({ text }) => text);
  for (const { events } of pods) {
    const lines = events.flatMap((event) => (event.type === "log" ? [event.text] : []));
    assert.deepEqual(
      texts.filter((text) => lines.includes(text)),
      lines,
    );
  }
}

async function checkJob(records: Records, id: string): Promise<void> {
  const job = await records.jobs.find(project, id);
  assert(job);
  assert.equal(job.telemetry.progress.fraction.toFixed(6), "0.600000");
  assert.deepEqual(job.telemetry.stageSeconds, { optimize: shares });
  assert.deepEqual(
    job.transitions.map(({ status }) => status),
    ["Pending", "Sharding", "Optimizing"],
  );
  const assemble = await records.attempts.beginPodAttempt(id, {
    podUid: "last",
    part: { step: "assemble", index: 0 },
  });
  const assignment = await records.workers.findAssignment(id, assemble ?? 0);
  assert.deepEqual(
    assignment?.part?.shares.map(({ index, bytes }) => [index, bytes]),
    Array.from({ length: shares }, (_, index) => [index, index]),
  );
}

test("whatever order the pods of shares report in, again and late, each line is there once and the job goes on as it should", async () => {
  const records = await openTestRecords();
  await fc.assert(
    fc.asyncProperty(anyPods, anyDeliveries, async (losses, tellings) => {
      const recipe = { ...defaultRecipe, parallelism: shares };
      const resource = { namespace: "models", name: "net", uid: null };
      const { id } = await records.jobs.create(project, makeNewJob({ recipe, resource }));
      await records.cluster.recordEvents(id, [{ type: "status", status: "Sharding" }]);
      const lost = await losePods(records, id, losses);
      const last: Pod[] = [];
      for (let index = 0; index < shares; index++) last.push(await beginPod(records, id, index, 9));
      for (const { share, from, count } of tellings) {
        const pod = last[share];
        if (pod !== undefined)
          await applyEvents(records, id, { ...pod, events: pod.events.slice(from, from + count) });
      }
      const pods = [...lost, ...last];
      for (const { attempt, events } of pods)
        await records.workers.recordFinalEvents(id, attempt, events);
      await checkLines(records, id, pods);
      await checkJob(records, id);
    }),
    { numRuns: 60 },
  );
  await records.close();
});

test("a job that ends before the log of a replaced pod is read says so, and takes its late lines", async () => {
  const records = await openTestRecords();
  const resource = { namespace: "models", name: "net", uid: null };
  const { id } = await records.jobs.create(project, makeNewJob({ resource }));
  const begin = async (podUid: string) => {
    const attempt = await records.attempts.beginPodAttempt(id, { podUid, part: null });
    assert(attempt !== undefined);
    return attempt;
  };
  const report = (attempt: number, ...events: UnnumberedEvent[]) =>
    records.workers.recordFinalEvents(
      id,
      attempt,
      events.map((event, index) => ({ ...event, seq: index + 1, at })),
    );
  const status = { type: "status", status: "Sharding" } as const;
  const optimizing = { type: "status", status: "Optimizing" } as const;
  const line = { type: "log", stream: "stdout", text: "Killed" } as const;
  const first = await begin("replaced");
  await report(first, status);
  await report(await begin("last"), status, optimizing, { type: "result", outcome: "Completed" });
  const readTexts = async () => (await readLog(records, id)).map(({ text }) => text);
  const ended = [
    "Another pod takes over: attempt 2 begins",
    "(lines of the worker may be missing here: the job ended before the log of attempt 1 was read)",
  ];
  assert.deepEqual(await readTexts(), ended);
  await report(first, status, line);
  assert.deepEqual(await readTexts(), [...ended, "Killed"]);
  await records.close();
});
