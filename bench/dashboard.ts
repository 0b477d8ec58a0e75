import { createServer } from "node:http";
import { join } from "node:path";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { openDashboard, signInByLink } from "../test/dashboard/open-dashboard.ts";
import { listenLocally } from "../test/support/listen-locally.ts";
import { seedJobs } from "./api/seed-jobs.ts";
import { measureFirstViews } from "./dashboard/measure-first-views.ts";
import { measureInteractions } from "./dashboard/measure-interactions.ts";
import { measureLogTasks, measureScrolling } from "./dashboard/measure-long-tasks.ts";
import { measureMemory } from "./dashboard/measure-memory.ts";
import { measureSlowView } from "./dashboard/measure-slow-view.ts";
import { seedLog } from "./dashboard/seed-log.ts";
import { limitRow, reportBench } from "./result.ts";

/**
 * The dashboard in a browser on the service's own machine. Arguments: jobs, minutes that it stays
 * open while jobs change.
 */
const [, jobs = "10000", minutes = "5"] = process.argv.slice(2);
const firstViewKiB = 200;
const firstRowMs = 600;
/** Over a connection of 50 KB/s whose answers take 400 ms. */
const slowShellMs = 1500;
const slowFirstRowMs = 3500;
const interactionMs = 100;
const taskMs = 50;
const logLines = 100_000;
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
const database = join(directory, "service.sqlite");
await seedJobs(database, Number(jobs));
const logged = await seedLog(database, logLines);
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
const slow = await measureSlowView(dashboard, storageState);
const page = await dashboard.openBrowser({ storageState });
const scrolling = await measureScrolling(page, dashboard);
const logLoading = await measureLogTasks(page, dashboard, { id: logged, lines: logLines });
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
  limitRow("shell over a slow connection", "ms", slow.shellMs, slowShellMs),
  limitRow("first row over a slow connection", "ms", slow.firstRowMs, slowFirstRowMs),
  limitRow("longest task while scrolling", "ms", scrolling, taskMs),
  limitRow(`longest task while ${logLines} lines load`, "ms", logLoading, taskMs),
  limitRow(`slowest interaction: ${slowest?.what}`, "ms", slowest?.ms ?? 0, interactionMs),
  limitRow(`heap after ${minutes} minutes of live jobs`, "ratio", memory.heapGrowth, heapGrowth),
  limitRow("nodes of the document after them", "ratio", memory.nodeGrowth, heapGrowth),
]);
