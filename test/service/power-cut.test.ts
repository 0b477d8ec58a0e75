import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import test from "node:test";
import { makeCuttableDisk } from "../support/cut-power.ts";
import { findLost } from "../support/find-lost.ts";
import { startRunningService } from "../support/running-service.ts";
import { startSilentHost, submitUntil, unlimited } from "../support/submit-until.ts";
import { until } from "../support/until.ts";

const cuts = 5;

test("a power cut takes back no job and no model that was acknowledged", async (t) => {
  await using cleanup = new AsyncDisposableStack();
  const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
  const parent = await mkdtemp(join(tmpdir(), "power-cut-"));
  owner.after(() => rm(parent, { recursive: true }));
  const disk = makeCuttableDisk(parent);
  if (disk === undefined) return t.skip("needs to mount a disk");
  owner.after(() => disk[Symbol.dispose]());
  const service = await startRunningService(owner, {
    directory: join(disk.folder, "data"),
    environment: unlimited,
  });
  const { pid = 0 } = service.process;
  const stop = new AbortController();
  const source = await startSilentHost(owner);
  const options = { callers: 8, source, uploads: true };
  const { acknowledged, ended } = submitUntil(stop.signal, service, options);
  await until("a job is acknowledged", () => acknowledged.jobs.length > 0);
  const lost: string[] = [];
  let checked = 0;
  for (let i = 0; i < cuts; i++) {
    await delay(200);
    const known = { jobs: [...acknowledged.jobs], models: [...acknowledged.models] };
    const after = await disk.cut(pid);
    lost.push(...(await after.read((folder) => findLost(join(folder, "data"), known))));
    checked = known.jobs.length;
  }
  stop.abort();
  await ended;
  assert.ok(checked > 0);
  assert.deepEqual(lost, []);
});
