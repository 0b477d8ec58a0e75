import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import type { JobDetail } from "../../src/contract/jobs/job.ts";
import { demoModels } from "../../src/demo/demo-models.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { until } from "../support/until.ts";
import {
  assertFitsAllLooks,
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";
import { writeProduct } from "./write-product.ts";

const skip = chromiumMissing;

/** A real model whose result fails its gate for the accuracy. */
async function runVoiceActivity({ client }: Dashboard): Promise<string> {
  const voice = demoModels.find(({ name }) => name === "voice-activity");
  const { source } = await client.uploadModel(voice?.file ?? "");
  const { id } = await client.call("startCompression", {
    body: {
      model: { source, name: "voice-activity" },
      target: "cpu",
      recipe: { granularity: "tensor", evaluation: { latencyBudgetSeconds: 0 } },
      gates: { maxSizeRatio: 0.5, minSqnrDb: 40 },
    },
  });
  await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  return id;
}

test("the page of a job says first what matters", { skip }, async (t) => {
  const dashboard = await openDashboard(t);
  const page = await signInByLink(dashboard);
  const id = await runVoiceActivity(dashboard);
  await t.test("a result that fails a gate is no good news", () =>
    checkVerdict(page, dashboard, id),
  );
  await t.test("words say what they mean", () => readTerm(page, dashboard, id));
  await t.test("its weights are searched, sorted and closed again", () => checkWeights(page));
  await t.test("its worst weight is shown in the graph", () => openAtWorst(page));
  await t.test("it is run again without its worst weight", () => runWithout(page));
  await t.test("a model in several files says what it needs", () =>
    openInFiles(page, dashboard, id),
  );
  await t.test("times have the reader's zone", () => checkZone(page, dashboard, id));
  await t.test("the menu of the person closes", () => checkMenu(page, dashboard, id));
  await t.test("a file is shared by a link, and the job is deleted", () =>
    shareAndDelete(page, dashboard, id),
  );
  assertNoComplaints(dashboard);
});

async function readTerm(page: Page, { origin }: Dashboard, id: string): Promise<void> {
  const word = page.getByRole("link", { name: "Accuracy", exact: true });
  assert.match((await word.getAttribute("title")) ?? "", /20 dB is an error of 10 %/);
  await word.click();
  await page.locator("#sqnr").getByText("Signal to quantization noise ratio").waitFor();
  await page.goto(`${origin}/jobs/${id}`);
}

async function checkVerdict(page: Page, { origin }: Dashboard, id: string): Promise<void> {
  await page.goto(`${origin}/jobs/${id}`);
  await page.locator("h1 .status.bad").getByText("Completed, fails 1 gate").waitFor();
  const first = page.getByRole("heading", { name: "What to look at first" });
  await first.waitFor();
  await page.getByText(/^Has an accuracy \(SQNR\) of \d\d\.\d dB; 40 dB are required$/).waitFor();
  await page.getByText(/^The worst weight is If_0_\S+: 1\d\.\d dB as int8/).waitFor();
  assert.match(await page.locator("a.button.main").innerText(), /^Run with changes$/);
  assert.match(await page.title(), /^✗ voice-activity for cpu/);
  await page.getByRole("heading", { name: "Weights" }).waitFor();
  const order = await page.locator("main h2").allInnerTexts();
  const shown = ["What to look at first", "Weights", "Graph", "Log"].map((title) =>
    order.indexOf(title),
  );
  assert.deepEqual(
    shown,
    shown.toSorted((a, b) => a - b),
  );
  assert.ok(shown.every((place) => place >= 0));
  await assertFitsAllLooks(page, "a job");
}

async function checkWeights(page: Page): Promise<void> {
  const rows = page.locator("table.weights tbody tr");
  await rows.first().waitFor();
  assert.equal(await rows.count(), 12);
  const reasons = rows.locator("td.change");
  await page.getByText("All that are shown: int8 with one scale, restored at load.").waitFor();
  assert.equal(await reasons.count(), 0);
  await page.getByRole("button", { name: "Show all weights" }).click();
  const cut = await reasons.evaluateAll((cells) =>
    cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent),
  );
  assert.deepEqual(cut, [], "reasons are cut");
  assert.equal(await rows.count(), 34);
  await page.getByRole("searchbox", { name: "Find weights" }).fill("lstm");
  assert.ok((await rows.count()) < 34);
  await page.getByLabel("Order of the weights").selectOption("by name");
  await page.getByRole("searchbox", { name: "Find weights" }).fill("");
  assert.match(await rows.first().innerText(), /^If_0_else_branch__Inline_0__\/stft/);
  await page.getByRole("button", { name: "Show fewer" }).click();
  assert.equal(await rows.count(), 12);
}

async function openAtWorst(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Show it in the graph" }).click();
  const node = page.getByRole("region", { name: "Selected node" });
  await node
    .getByText(/^If_0_/)
    .first()
    .waitFor();
  await page.getByRole("navigation", { name: "Graphs around this one" }).waitFor();
  assert.match(page.url(), /#graph=If_0_/);
  await page.reload();
  await node
    .getByText(/^If_0_/)
    .first()
    .waitFor();
}

async function runWithout(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Run again without it" }).click();
  await page.getByText(/^Based on/).waitFor();
  assert.match(await page.getByLabel("Other recipe fields").inputValue(), /"exclude": \[\s+"If_0_/);
  assert.deepEqual(await findBarriers(page), []);
}

/** From the page to the page of a link, both of which lead to a file that is not the whole model. */
async function openInFiles(
  page: Page,
  { client, origin }: Dashboard,
  whole: string,
): Promise<void> {
  const { model } = await client.call("getJob", { params: { id: whole } });
  const recipe = { sharding: { maxShardBytes: 65_536 }, evaluation: { level: "none" as const } };
  const { id } = await client.call("startCompression", {
    body: { model: { source: model.source, name: "shards".repeat(16) }, target: "cpu", recipe },
  });
  const job = await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  const { length: count } = job.artifacts.filter(({ kind }) => kind === "weights");
  assert.ok(count > 1);
  const words = `model.onnx does not hold its weights: it needs ${count} more files, `;
  await page.goto(`${origin}/jobs/${id}`);
  await page.getByRole("link", { name: `Download model, 1 of ${count + 1} files` }).waitFor();
  await page.getByText(words).waitFor();
  const params = { id, name: "model.onnx" };
  const { url } = await client.call("linkArtifact", { params, body: { withSummary: true } });
  await page.goto(url.replace("127.0.0.1", "localhost"));
  await page.getByText(words).waitFor();
  await page.getByText("Ask whoever sent this for a link to each of them too.").waitFor();
  await assertFitsAllLooks(page, "a link to a part of a model");
  await page.goto(`${origin}/models`);
  const hidden = await page
    .locator(".card", { has: page.getByRole("table") })
    .evaluate((card) => card.scrollWidth - card.clientWidth);
  assert.ok(hidden <= 0, `a long name hides ${hidden} pixels of the models`);
}

async function checkZone(page: Page, dashboard: Dashboard, id: string): Promise<void> {
  const storageState = await page.context().storageState();
  const abroad = await dashboard.openBrowser({ storageState, timezoneId: "America/New_York" });
  await abroad.goto(`${dashboard.origin}/jobs/${id}`);
  const end = abroad.getByText(/^Completed at/);
  assert.match(await end.innerText(), /^Completed at\s+\d\d:\d\d:\d\d E[SD]T$/);
  const { finishedAt } = await dashboard.client.call("getJob", { params: { id } });
  const hour = new Date(finishedAt ?? "").toLocaleString("en", {
    timeZone: "America/New_York",
    hour: "2-digit",
    hourCycle: "h23",
  });
  assert.ok((await end.innerText()).includes(`${hour}:`));
  await abroad.context().close();
}

async function checkMenu(page: Page, { origin }: Dashboard, id: string): Promise<void> {
  await page.goto(`${origin}/jobs/${id}`);
  const menu = page.locator("details.person");
  const open = async () => {
    await menu.locator("summary").click();
    await page.getByRole("link", { name: "Account" }).waitFor();
  };
  const closed = page.locator("details.person:not([open])");
  await open();
  await page.keyboard.press("Escape");
  await closed.waitFor();
  await open();
  await page.locator("h1").click();
  await closed.waitFor();
  await open();
  await page.getByRole("link", { name: "Account" }).click();
  await page.getByRole("heading", { name: "Account" }).waitFor();
  await closed.waitFor();
}

async function shareAndDelete(page: Page, dashboard: Dashboard, id: string): Promise<void> {
  await page.goto(`${dashboard.origin}/jobs/${id}`);
  const more = page.locator("summary").getByText("More");
  await more.click();
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByLabel("File").selectOption("model.onnx");
  await page.getByRole("button", { name: "Create a link" }).click();
  const link = await page.getByRole("region", { name: "Link to the result" }).innerText();
  assert.deepEqual(await findBarriers(page), []);
  await openLink(dashboard, link);
  const { status, headers } = await fetch(link.replace("localhost", "127.0.0.1"));
  assert.equal(status, 200);
  assert.match(headers.get("content-disposition") ?? "", /model\.onnx/);
  await page.getByRole("button", { name: "Close" }).click();
  await more.click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the job" }).click();
  await page.waitForURL(/\/jobs$/);
  await page.goto(`${dashboard.origin}/jobs/${id}`);
  await page.getByRole("heading", { name: "No such job", level: 1 }).waitFor();
  assert.deepEqual(await findBarriers(page), []);
}

/** As a colleague does who is not signed in. */
async function openLink({ openBrowser }: Dashboard, link: string): Promise<void> {
  const page = await openBrowser();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(link);
  await page.locator("h1").getByText("voice-activity for cpu").waitFor();
  await page.locator("h1 .status.bad").getByText("Completed, fails 1 gate").waitFor();
  await page.getByText("int8-weight, per tensor").waitFor();
  await page.getByText(/^\d+ kB, 31 % of 2\.33 MB$/).waitFor();
  await page.getByText(/^Accuracy \(SQNR\): at least 40 dB; it is \d\d\.\d dB$/).waitFor();
  const program = page.getByRole("region", { name: "Python program" });
  assert.match(await program.innerText(), /InferenceSession\("model\.onnx"\)/);
  await assertFitsAllLooks(page, "a link to a result");
  const downloaded = page.waitForEvent("download");
  await page.getByRole("link", { name: /^Download model\.onnx/ }).click();
  assert.equal((await downloaded).suggestedFilename(), "model.onnx");
  assert.deepEqual(errors, []);
  const broken = new URL(link);
  broken.searchParams.set("signature", "A".repeat(43));
  await page.goto(broken.href);
  await page.getByRole("heading", { name: "No such link", level: 1 }).waitFor();
  await page.context().close();
}

test(
  "a job that waits says why and its place, and nothing moves while it runs",
  { skip },
  async (t) => {
    const host = await listenLocally(t, createServer());
    const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true", MOS_WORKERS: "1" };
    const dashboard = await openDashboard(t, { environment });
    const { client, origin } = dashboard;
    const page = await signInByLink(dashboard);
    const silent = { model: { source: `${host}/silent.onnx` }, target: "cpu" };
    const { id: first } = await client.call("startCompression", { body: silent });
    const job = await startProduct(t, dashboard);
    await t.test("a worker that starts is not counted as waiting", async () => {
      await until("one job is counted as running, and one as waiting", async () => {
        const { runningJobs, waitingJobs } = await client.call("getUsage", {});
        return runningJobs.used === 1 && waitingJobs.used === 1;
      });
    });
    await page.goto(`${origin}/jobs/${job}`);
    await page.getByText("1st in the queue. The job starts when a worker is free.").waitFor();
    await page.locator("code").getByText("MOS_WORKERS").waitFor();
    assert.equal(await page.getByText("`").or(page.getByText("Nothing:")).count(), 0);
    const log = page.getByRole("heading", { name: "Log" });
    const places = new Set<number>();
    const note = async () => {
      places.add((await log.boundingBox())?.y ?? -1);
    };
    await note();
    await client.call("cancelJob", { params: { id: first } });
    const end = page.locator("h1 .status").getByText("Completed, passes 1 gate").waitFor();
    const left = { isOver: false };
    void end.then(() => (left.isOver = true));
    while (!left.isOver) {
      await note();
      // Without a pause that would keep a processor from the job.
      await page.evaluate(untilChange);
    }
    await page.getByRole("heading", { name: "Weights" }).waitFor();
    await note();
    assert.equal(places.size, 1, `the log moved: ${[...places].join(", ")}`);
    assert.deepEqual(await findBarriers(page), []);
    await t.test("nor does it where texts are long", () => checkLongTexts(page, dashboard, job));
    assertNoComplaints(dashboard);
  },
);

/** In the page: resolves at the next change of its content, or a little later. */
const untilChange = `new Promise((resolve) => {
  const observer = new MutationObserver(() => resolve());
  observer.observe(document, { subtree: true, childList: true, characterData: true });
  setTimeout(resolve, 500);
})`;

/** Shows a job that has ended as if it ran, each time with other texts. */
async function checkLongTexts(page: Page, dashboard: Dashboard, id: string): Promise<void> {
  const ended = await dashboard.client.call("getJob", { params: { id } });
  const { telemetry } = ended;
  const running: JobDetail = {
    ...ended,
    status: "Optimizing",
    finishedAt: null,
    artifacts: [],
    telemetry: { warnings: [], progress: { fraction: 0.5, message: "Optimizing" } },
  };
  const message = "Quantized the weights of encoder.layers.12.attention.self.query. ".repeat(9);
  const latency = {
    ratio: 1.09,
    ratioLow: 0.2,
    ratioHigh: 9.5,
    sessions: 2,
    original: { p50Ms: 1234.5, runs: 40 },
    result: { p50Ms: 1345.6, runs: 40 },
    shapes: [
      { inputs: "341 tokens", originalP50Ms: 1234.5, resultP50Ms: 1345.6, ratio: 1.09 },
      { inputs: "1 token after 340", originalP50Ms: 80.6, resultP50Ms: 37.4, ratio: 0.49 },
    ],
  };
  const progress = { fraction: 0.6, message };
  const stageSeconds = { fetch: 86000, shard: 86000, optimize: 86000, evaluate: 86000, publish: 9 };
  const shown: JobDetail[] = [
    running,
    { ...running, status: "Pending", statusMessage: message, statusReason: "waiting_for_pod" },
    { ...running, telemetry: { ...running.telemetry, progress } },
    { ...ended, name: message.slice(0, 128), telemetry: { ...telemetry, latency, stageSeconds } },
    { ...running, status: "Failed", startedAt: null, error: { code: "model_invalid", message } },
  ];
  let [json] = shown;
  await page.route(`**/v1/jobs/${id}`, (route) => route.fulfill({ json }));
  await page.goto(`${dashboard.origin}/jobs/${id}`);
  const log = page.getByRole("heading", { name: "Log" });
  await log.waitFor();
  const place = (await log.boundingBox())?.y;
  for (json of shown.slice(1)) {
    const status = page.locator("h1 .status").getByText(json.status).waitFor();
    const answer = page.waitForResponse(`**/v1/jobs/${id}`);
    await page.evaluate(tellChange, id);
    await (await answer).finished();
    await status;
    if (json.telemetry.latency !== undefined)
      await page.getByText("×0.49 for 1 token after 340").waitFor();
    assert.equal((await log.boundingBox())?.y, place, `the log of a ${json.status} job moved`);
  }
  // The last one failed before it measured anything.
  await page
    .getByText("The job ended before it measured any. Correct what the message names")
    .waitFor();
  assert.equal(await page.getByText("not measured").count(), 0);
  await page.unroute(`**/v1/jobs/${id}`);
}

/** Tells all tabs that a job changed. */
function tellChange(id: string): void {
  new BroadcastChannel("changes").postMessage({ change: { seq: 1, job: { id } } });
}

async function startProduct(t: TestContext, { client }: Dashboard): Promise<string> {
  const { source } = await client.uploadModel(await writeProduct(t));
  const gates = { maxSizeRatio: 0.5 };
  const body = { model: { source }, target: "cpu", gates };
  return (await client.call("startCompression", { body })).id;
}
