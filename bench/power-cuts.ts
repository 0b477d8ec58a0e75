import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeCuttableDisk } from "../test/support/cut-power.ts";
import { findLost } from "../test/support/find-lost.ts";
import { startRunningService } from "../test/support/running-service.ts";
import {
  type Acknowledged,
  startSilentHost,
  submitUntil,
  unlimited,
} from "../test/support/submit-until.ts";
import { limitRow, reportBench } from "./result.ts";

/**
 * Power failures while callers submit jobs and upload models: each is a copy of the disk without
 * what the kernel had in memory only. Argument: number of cuts. Needs to mount disks.
 */
const cuts = Number(process.argv[3] ?? 100);
/** Of submissions between two cuts. */
const msBetween = 150;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const parent = await mkdtemp(join(tmpdir(), "power-cuts-"));
owner.after(() => rm(parent, { recursive: true }));
const disk = makeCuttableDisk(parent);
if (disk === undefined) throw new Error("A disk cannot be mounted: run as root");
owner.after(() => disk[Symbol.dispose]());
const service = await startRunningService(owner, {
  directory: join(disk.folder, "data"),
  environment: unlimited,
});
const { pid = 0 } = service.process;
const source = await startSilentHost(owner);
const all: Acknowledged = { jobs: [], models: [] };
let [lost, ms] = [0, 0];
for (let i = 0; i < cuts; i++) {
  const stop = new AbortController();
  const options = { callers: 16, source, uploads: true };
  const start = performance.now();
  const { acknowledged, ended } = submitUntil(stop.signal, service, options);
  await delay(msBetween);
  ms += performance.now() - start;
  all.jobs.push(...acknowledged.jobs);
  all.models.push(...acknowledged.models);
  const after = await disk.cut(pid);
  stop.abort();
  await ended;
  lost += (await after.read((folder) => findLost(join(folder, "data"), all))).length;
}
const things = all.jobs.length + all.models.length;
const perSecond = (1000 * things) / ms;
await reportBench("power-cuts", [
  limitRow("acknowledged jobs and models that are missing", "things", lost, 0),
  { what: "cuts", unit: "cuts", ours: cuts, peer: null, bar: "none", met: null },
  {
    what: "acknowledged before a cut",
    unit: "things",
    ours: things,
    peer: null,
    bar: "none",
    met: null,
  },
  {
    what: "acknowledged while the disk was cut again and again",
    unit: "1/s",
    ours: perSecond,
    peer: null,
    bar: ">= 500",
    met: perSecond >= 500,
  },
]);
