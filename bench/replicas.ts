import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "../src/client/create-client.ts";
import { routes } from "../src/contract/routes/routes.ts";
import { isTerminal, type JobStatus } from "../src/contract/jobs/status.ts";
import { balanceConnections } from "../test/support/balance-connections.ts";
import { realModel } from "../test/support/real-models.ts";
import { replicateService } from "../test/support/replicated-service.ts";
import type { RunningService } from "../test/support/running-service.ts";
import { followChanges } from "./replicas/follow-changes.ts";
import { limitRow, reportBench } from "./result.ts";

/**
 * Kills one of several replicas of the service every ten seconds, while callers submit jobs and
 * follow logs and changes through one address. Argument: seconds of killing.
 */
const seconds = Number(process.argv[3] ?? 600);
const replicas = 3;
const killMs = 10_000;
const callers = 3;
/** Between two jobs of a caller: no more than the replicas complete. */
const pauseMs = 2_000;
const recipe = { evaluation: { level: "none" } } as const;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
await using balancer = await balanceConnections();
const service = await replicateService(owner, { MOS_WORKERS: "1" });
const running: RunningService[] = [];
for (let i = 0; i < replicas; i++) running.push(await startReplica());
const { token = "" } = running[0] ?? {};
const client = createClient({ routes, baseUrl: `${balancer.origin}/v1`, token });
const { source } = await client.uploadModel(realModel("ocr-orientation"));

const stop = new AbortController();
const following = new AbortController();
const statuses = new Map<string, JobStatus>();
const changes = followChanges({ origin: balancer.origin, token }, statuses, following.signal);
const jobs: string[] = [];
const counts = { calls: 0, failedCalls: 0, incompleteJobs: 0, wrongLogs: 0, kills: 0 };
const calling = Array.from({ length: callers }, () => submitAndFollow());
await killRepeatedly();
stop.abort();
await Promise.all(calling);
await untilTold();
following.abort();
await changes;
const unreported = jobs.filter((id) => !isTerminal(statuses.get(id) ?? "Pending")).length;
await reportBench("replicas", [
  limitRow(`calls of ${counts.calls} that failed after retries`, "calls", counts.failedCalls, 0),
  limitRow(`jobs of ${jobs.length} whose log has lost lines`, "jobs", counts.wrongLogs, 0),
  limitRow("jobs whose end no event reported", "jobs", unreported, 0),
  limitRow("jobs that are not Completed", "jobs", counts.incompleteJobs, 0),
  { what: "kills", unit: "kills", ours: counts.kills, peer: null, bar: "none", met: null },
]);

async function startReplica(): Promise<RunningService> {
  const replica = await service.startReplica();
  balancer.ports.add(Number(new URL(replica.baseUrl).port));
  return replica;
}

async function killRepeatedly(): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const pause = delay(killMs);
    const killed = running.shift();
    if (killed === undefined) throw new TypeError("There is no replica");
    killed.process.kill("SIGKILL");
    await once(killed.process, "exit");
    balancer.ports.delete(Number(new URL(killed.baseUrl).port));
    counts.kills++;
    running.push(await startReplica());
    await pause;
  }
}

async function submitAndFollow(): Promise<void> {
  while (!stop.signal.aborted) {
    const id = await submit();
    if (id !== undefined) await Promise.all([followToEnd(id), delay(pauseMs)]);
  }
}

async function submit(): Promise<string | undefined> {
  const body = { model: { source }, target: "cpu", recipe };
  const headers = { "idempotency-key": randomUUID() };
  const job = await count(() => client.call("startCompression", { body, headers }));
  if (job !== undefined) jobs.push(job.id);
  return job?.id;
}

async function followToEnd(id: string): Promise<void> {
  const seqs: number[] = [];
  await count(async () => {
    for await (const { seq } of client.followLogs(id)) seqs.push(seq);
  });
  if (seqs.length === 0 || seqs.some((seq, i) => seq !== i + 1)) counts.wrongLogs++;
  const job = await count(() => client.call("getJob", { params: { id } }));
  if (job?.status !== "Completed") counts.incompleteJobs++;
}

async function count<T>(call: () => Promise<T>): Promise<T | undefined> {
  counts.calls++;
  try {
    return await call();
  } catch (error) {
    counts.failedCalls++;
    process.stderr.write(`${String(error)}\n`);
    return undefined;
  }
}

/** Waits for events that are under way. */
async function untilTold(): Promise<void> {
  const deadline = performance.now() + 5_000;
  const isTold = () => jobs.every((id) => isTerminal(statuses.get(id) ?? "Pending"));
  while (!isTold() && performance.now() < deadline) await delay(100);
}
