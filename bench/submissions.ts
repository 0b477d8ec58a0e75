import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { startRunningService } from "../test/support/running-service.ts";
import { startSilentHost, submitUntil, unlimited } from "../test/support/submit-until.ts";
import { reportBench } from "./result.ts";

/** How many jobs a second the service records, each flushed to the disk before its answer. */
const seconds = Number(process.argv[3] ?? 8);
const callers = 16;

await using cleanup = new AsyncDisposableStack();
const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
const service = await startRunningService(owner, { environment: unlimited });
const source = await startSilentHost(owner);
const options = { callers, source, uploads: false };
await measure(2);
const { perSecond, cpuMs } = await measure(seconds);
await reportBench("submissions", [
  {
    what: `POST /compress, ${callers} callers on the same machine`,
    unit: "1/s",
    ours: perSecond,
    peer: null,
    bar: ">= 1000",
    met: perSecond >= 1000,
  },
  {
    what: "processor time of the service for a job, all its threads",
    unit: "ms",
    ours: cpuMs,
    peer: null,
    bar: "none",
    met: null,
  },
]);

async function measure(duration: number): Promise<{ perSecond: number; cpuMs: number }> {
  const stop = new AbortController();
  const [start, cpuStart] = [performance.now(), await readCpuMs()];
  const { acknowledged, ended } = submitUntil(stop.signal, service, options);
  await delay(duration * 1000);
  stop.abort();
  await ended;
  const { length: jobs } = acknowledged.jobs;
  const perSecond = jobs / ((performance.now() - start) / 1000);
  return { perSecond, cpuMs: ((await readCpuMs()) - cpuStart) / jobs };
}

/** Processor time of the service so far; Linux counts it in hundredths of a second. */
async function readCpuMs(): Promise<number> {
  const stat = await readFile(`/proc/${service.process.pid}/stat`, "utf8");
  const [user = "0", system = "0"] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14);
  return 10 * (Number(user) + Number(system));
}
