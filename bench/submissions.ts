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
const perSecond = await measure(seconds);
await reportBench("submissions", [
  {
    what: `POST /compress, ${callers} callers on the same machine`,
    unit: "1/s",
    ours: perSecond,
    peer: null,
    bar: ">= 1000",
    met: perSecond >= 1000,
  },
]);

async function measure(duration: number): Promise<number> {
  const stop = new AbortController();
  const start = performance.now();
  const { acknowledged, ended } = submitUntil(stop.signal, service, options);
  await delay(duration * 1000);
  stop.abort();
  await ended;
  return acknowledged.jobs.length / ((performance.now() - start) / 1000);
}
