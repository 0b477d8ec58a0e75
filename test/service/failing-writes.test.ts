import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { glob, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { z } from "zod";
import { problem } from "../../src/contract/errors.ts";
import { hashTestFile } from "../support/external-model.ts";
import { buildFailingCalls, type Failure } from "../support/failing-calls.ts";
import { findLost } from "../support/find-lost.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { type Acknowledged, startSilentHost, unlimited } from "../support/submit-until.ts";

const writes = ["pwrite", "ftruncate", "rename"];
const flushes = ["fsync", "fdatasync"];
const created = z.object({ id: z.string() });
const cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const acknowledged: Acknowledged = { jobs: [], models: [] };
let source = "";
let first: RunningService;
let describeFailure: Awaited<ReturnType<typeof buildFailingCalls>>;
before(async () => {
  const folder = await mkdtemp(join(tmpdir(), "failing-"));
  owner.after(() => rm(folder, { recursive: true }));
  describeFailure = await buildFailingCalls(folder);
  source = await startSilentHost(owner);
  first = await startRunningService(owner, { environment: unlimited });
  await submitInTurn(first, 10);
  await end(first);
});
after(() => cleanup.disposeAsync());

async function end({ process }: RunningService): Promise<void> {
  process.kill("SIGKILL");
  if (process.exitCode === null && process.signalCode === null) await once(process, "exit");
}

/** Starts the service on the same data once more; undefined where a failure ends it before. */
async function startFailing(failing: Record<string, string>): Promise<RunningService | undefined> {
  const options = { from: first, environment: { ...unlimited, ...failing } };
  return startRunningService(owner, options).catch(() => undefined);
}

/** Submits jobs and models, until the service is gone. @returns codes of what was refused */
async function submitInTurn(service: RunningService, count: number): Promise<Set<string>> {
  const refusals = new Set<string>();
  try {
    for (let i = 0; i < count; i++) {
      const code = await (i % 2 === 0 ? submitJob(service) : uploadModel(service));
      if (code !== undefined) refusals.add(code);
    }
  } catch (error) {
    // The service is gone, before its answer or in the middle of it.
    if (!(error instanceof TypeError)) throw error;
  }
  return refusals;
}

async function submitJob({ baseUrl, token }: RunningService): Promise<string | undefined> {
  const answer = await fetch(`${baseUrl}/compress`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: { source }, target: "cpu" }),
  });
  const text: unknown = await answer.json();
  if (!answer.ok) return problem.parse(text).code;
  acknowledged.jobs.push(created.parse(text).id);
  return undefined;
}

async function uploadModel({ baseUrl, token }: RunningService): Promise<string | undefined> {
  const body = randomBytes(5_000);
  const sha256 = createHash("sha256").update(body).digest("hex");
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${baseUrl}/models/${sha256}`, { method: "PUT", headers, body });
  const text: unknown = await answer.json();
  if (!answer.ok) return problem.parse(text).code;
  acknowledged.models.push(sha256);
  return undefined;
}

/** What was acknowledged and is not there, and blobs that are not what their names say. */
async function findFaults(): Promise<string[]> {
  const faults = await findLost(first.directory, acknowledged);
  for await (const file of glob(join(first.directory, "blobs/*/*"))) {
    if ((await hashTestFile(file)) !== basename(file)) faults.push(file);
  }
  return faults;
}

test("a service that is killed at any of its writes loses nothing, and leaves nothing half", async (t) => {
  if (describeFailure === undefined) return t.skip("Needs a C compiler on Linux");
  for (const number of [2, 40, 90, 150, 211, 290]) {
    const failing = describeFailure({ calls: [...writes, ...flushes], first: number });
    const service = await startFailing(failing);
    if (service !== undefined) {
      await submitInTurn(service, Infinity);
      await end(service);
    }
    assert.deepEqual(await findFaults(), [], `killed at call ${number}`);
  }
  t.diagnostic(`${acknowledged.jobs.length} jobs, ${acknowledged.models.length} models`);
});

const failures: readonly (readonly [Failure, string])[] = [
  [{ calls: writes, error: "EIO", first: 100, step: 199 }, "unavailable"],
  [{ calls: flushes, error: "EIO", first: 40, step: 5 }, "unavailable"],
  [{ calls: writes, error: "ENOSPC", first: 100, step: 199 }, "storage_full"],
];
for (const [failure, code] of failures) {
  const { calls, error } = failure;
  test(`a service whose ${calls.join(", ")} fails with ${String(error)} names it, and loses nothing`, async (t) => {
    if (describeFailure === undefined) return t.skip("Needs a C compiler on Linux");
    const service = await startFailing(describeFailure(failure));
    assert.ok(service);
    assert.deepEqual([...(await submitInTurn(service, 150))], [code]);
    assert.equal((await service.client.call("listJobs", { query: {} })).jobs.length, 50);
    await end(service);
    assert.deepEqual(await findFaults(), []);
  });
}
