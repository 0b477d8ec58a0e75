import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDashboard, signInByLink } from "../test/dashboard/open-dashboard.ts";
import { takeLongestTask, watchTasks } from "./dashboard/longest-task.ts";
import { logLineBytes, seedLog } from "./dashboard/seed-log.ts";
import { limitRow, reportBench } from "./result.ts";

/** A log of many lines in the dashboard, on the service's own machine. Argument: megabytes. */
const [, megabytes = "100"] = process.argv.slice(2);
const lines = Math.ceil((Number(megabytes) * 1e6) / logLineBytes);
const interactionMs = 100;

await using stack = new AsyncDisposableStack();
const t = {
  after(run: () => Promise<unknown>) {
    stack.defer(async () => {
      await run();
    });
  },
};
const directory = await mkdtemp(join(tmpdir(), "large-log-"));
const id = await seedLog(join(directory, "service.sqlite"), lines);
const dashboard = await openDashboard(t, { directory });
const page = await signInByLink(dashboard);
const shown = `${lines.toLocaleString("en")} lines`;
await page.goto(`${dashboard.origin}/jobs/${id}`);
await watchTasks(page);
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
