import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Page } from "playwright-core";
import { openDashboard, signInByLink } from "../test/dashboard/open-dashboard.ts";
import { seedJobs } from "./api/seed-jobs.ts";
import { limitRow, reportBench } from "./result.ts";

/** A log of many lines in the dashboard, on the service's own machine. Argument: megabytes. */
const [, megabytes = "100"] = process.argv.slice(2);
const text =
  "Layer 117 of 240: MatMul of the attention, int8 by block, 24,576 bytes, SQNR 41.3 dB and more";
const lines = Math.ceil((Number(megabytes) * 1e6) / (text.length + 1));
const interactionMs = 100;
const watchTasks = `
  longestTask = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestTask = Math.max(longestTask, duration);
  }).observe({ type: "longtask" });
`;

await using stack = new AsyncDisposableStack();
const t = {
  after(run: () => Promise<unknown>) {
    stack.defer(async () => {
      await run();
    });
  },
};
const directory = await mkdtemp(join(tmpdir(), "large-log-"));
const id = await seedLog(join(directory, "service.sqlite"));
const dashboard = await openDashboard(t, { directory });
const page = await signInByLink(dashboard);
const shown = `${lines.toLocaleString("en")} lines`;
await page.goto(`${dashboard.origin}/jobs/${id}`);
await page.evaluate(watchTasks);
const started = performance.now();
await page.getByText(shown).waitFor({ timeout: 600_000 });
const seconds = (performance.now() - started) / 1000;
const loading = await takeLongestTask(page);
const log = page.getByRole("log");
await log.getByRole("link", { name: `Line ${lines}`, exact: true }).waitFor();
await page.getByLabel("Search the log").fill("layer 117");
await page.getByText(`1 of ${lines.toLocaleString("en")}`).waitFor();
const searching = await takeLongestTask(page);
await log.evaluate((element) => element.scrollTo({ top: element.scrollHeight / 2 }));
await log.getByRole("link", { name: `Line ${Math.round(lines / 2)}`, exact: true }).waitFor();
const scrolling = await takeLongestTask(page);
await reportBench("large-log", [
  { what: `${shown}, whole in the page`, unit: "s", ours: seconds, peer: null, bar: "", met: null },
  limitRow("longest task while they load", "ms", loading, interactionMs),
  limitRow("longest task of a search that finds all", "ms", searching, interactionMs),
  limitRow("longest task of scrolling to the middle", "ms", scrolling, interactionMs),
]);

/** @returns the id of the job that has the log */
async function seedLog(path: string): Promise<string> {
  await seedJobs(path, 1);
  const database = new DatabaseSync(path);
  const job = database.prepare("select id from jobs").get();
  const insert = database.prepare("insert into log_lines values (?, ?, ?, 'stdout', ?)");
  const at = new Date().toISOString();
  database.exec("begin");
  for (let seq = 1; seq <= lines; seq++) insert.run(job?.["id"] ?? "", seq, at, text);
  database.exec("commit");
  database.close();
  return String(job?.["id"]);
}

async function takeLongestTask(from: Page): Promise<number> {
  return Number(await from.evaluate("[longestTask, (longestTask = 0)][0]"));
}
