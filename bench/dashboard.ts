import { createServer } from "node:http";
import { join } from "node:path";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { openDashboard, signInByLink } from "../test/dashboard/open-dashboard.ts";
import { listenLocally } from "../test/support/listen-locally.ts";
import { seedJobs } from "./api/seed-jobs.ts";
import { measureFirstViews } from "./dashboard/measure-first-views.ts";
import { measureInteractions } from "./dashboard/measure-interactions.ts";
import { measureMemory } from "./dashboard/measure-memory.ts";
import { limitRow, reportBench } from "./result.ts";

/**
 * The dashboard in a browser on the service's own machine. Arguments: jobs, minutes that it stays
 * open while jobs change.
 */
const [, jobs = "10000", minutes = "5"] = process.argv.slice(2);
const firstViewKiB = 200;
const firstRowMs = 1000;
const interactionMs = 100;
/** By how much two collections of garbage may differ. */
const heapGrowth = 1.1;

await using stack = new AsyncDisposableStack();
const t = {
  after(run: () => Promise<unknown>) {
    stack.defer(async () => {
      await run();
    });
  },
};
const directory = await mkdtemp(join(tmpdir(), "dashboard-"));
await seedJobs(join(directory, "service.sqlite"), Number(jobs));
const host = await listenLocally(t, createServer());
const dashboard = await openDashboard(t, {
  directory,
  environment: {
    MOS_ALLOW_PRIVATE_ADDRESSES: "true",
    MOS_QUOTAS: "{waitingJobs: 1000000, requestsPerMinute: 100000000}",
  },
});
const storageState = await (await signInByLink(dashboard)).context().storageState();
const views = await measureFirstViews(dashboard, storageState);
const page = await dashboard.openBrowser({ storageState });
const interactions = await measureInteractions(page, dashboard);
const memory = await measureMemory(page, dashboard, {
  seconds: 60 * Number(minutes),
  source: `${host}/silent.onnx`,
});
console.table(interactions.map(({ what, ms }) => ({ what, ms })));
console.table(memory.course);
const [slowest] = interactions.toSorted((a, b) => b.ms - a.ms);
await reportBench("dashboard", [
  limitRow("first view, compressed", "KiB", views.bytes / 1024, firstViewKiB),
  limitRow(`first row of ${jobs} jobs, median`, "ms", views.firstRowMs, firstRowMs),
  limitRow(`slowest interaction: ${slowest?.what}`, "ms", slowest?.ms ?? 0, interactionMs),
  limitRow(`heap after ${minutes} minutes of live jobs`, "ratio", memory.heapGrowth, heapGrowth),
  limitRow("nodes of the document after them", "ratio", memory.nodeGrowth, heapGrowth),
]);
