import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import test, { type TestContext } from "node:test";
import type { Locator, Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { findFreePort } from "../support/find-free-port.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { type Dashboard, findBarriers, openDashboard, signInByLink } from "./open-dashboard.ts";
import { writeProduct } from "./write-product.ts";

const skip = chromiumMissing;

async function startJob({ client }: Dashboard, file: string, name: string) {
  const { source } = await client.uploadModel(file);
  const evaluation = { level: "none" as const };
  const body = { name, model: { source }, target: "cpu", recipe: { evaluation } };
  return client.call("startCompression", { body });
}

test("jobs in the page", { skip }, async (t) => {
  const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true" };
  const dashboard = await openDashboard(t, { environment });
  const parts = {
    "the list of jobs is live, and new ones wait to be shown": watchList,
    "a model that is dropped becomes a job, live to its end, with its log": dropModel,
    "an upload survives a lost connection and a wrong part": loseConnection,
    "a job is cancelled and run again": cancelAndRepeat,
    "what ended before its page heard of changes is shown": endBeforeStream,
    "names, log lines, labels and nodes with HTML are shown as text": openHostile,
  };
  for (const [name, part] of Object.entries(parts)) {
    await t.test(name, () => part(t, dashboard));
  }
});

async function dropModel(t: TestContext, dashboard: Dashboard): Promise<void> {
  const page = await signInByLink(dashboard);
  await page.getByRole("link", { name: "New job" }).first().click();
  await page.locator("input[type=file]").setInputFiles(await writeProduct(t));
  await page.getByText("Uploaded").waitFor();
  await page.getByLabel("Maximum size").fill("0.9");
  await page.getByRole("button", { name: "Predict size" }).click();
  await page.getByText(/% of 16\.\d kB; the job takes about \d+ MB of memory/).waitFor();
  await page.getByRole("button", { name: "Start job" }).click();

  await page.waitForURL(/\/jobs\/job-/);
  await page.locator("h1 .status").getByText("Completed").waitFor();
  await page.getByText("1 of 1 passed").waitFor();
  await page.getByText(/^\d+ MB, \d+ MB forecast$/).waitFor();
  await page.getByRole("heading", { name: "Latency" }).waitFor();
  const log = page.getByRole("log");
  await log.getByText(/^Size: 16\.\d kB to/).waitFor();
  await page.getByLabel("Search the log").fill("[optimize]");
  await page
    .getByRole("status")
    .getByText(/^1 of \d/)
    .waitFor();
  await page.getByRole("heading", { name: "Weights" }).waitFor();

  await page.locator("summary").getByText("More").click();
  await page.getByRole("button", { name: "Copy as" }).click();
  await page.getByRole("button", { name: "YAML for kubectl" }).click();
  await page.getByText("kind: CompressionJob").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  await page.getByRole("button", { name: "Close" }).click();

  assert.deepEqual(await findBarriers(page), []);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download model" }).click();
  assert.equal((await download).suggestedFilename(), "model.onnx");
  assert.deepEqual(dashboard.complaints, []);
}

async function loseConnection(t: TestContext, dashboard: Dashboard): Promise<void> {
  const page = await signInByLink(dashboard);
  const file = await writeProduct(t);
  const { size } = await stat(file);
  const ranges: (string | undefined)[] = [];
  await page.route("**/v1/models/*", async (route) => {
    const asked = route.request();
    if (asked.method() === "HEAD") {
      const headers = ranges.length > 0 ? { "upload-offset": "100" } : {};
      return route.fulfill({ status: 404, headers });
    }
    ranges.push(asked.headers()["content-range"]);
    if (ranges.length === 1) return route.abort("connectionreset");
    if (ranges.length === 2) return route.fulfill(checksumMismatch);
    return route.continue();
  });
  await page.goto(`${dashboard.origin}/new`);
  await page.locator("input[type=file]").setInputFiles(file);
  await page.getByText("Uploaded").waitFor();
  assert.deepEqual(ranges, [undefined, `bytes 100-${size - 1}/${size}`, undefined]);
}

const checksumMismatch = {
  status: 422,
  contentType: "application/problem+json",
  body: JSON.stringify({
    type: "about:blank",
    title: "The model's SHA-256 is not the expected one",
    status: 422,
    code: "model_checksum_mismatch",
    detail: "Other bytes",
  }),
};

async function watchList(t: TestContext, dashboard: Dashboard): Promise<void> {
  const page = await signInByLink(dashboard);
  const file = await writeProduct(t);
  await page.getByText("No jobs yet").waitFor();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await startJob(dashboard, file, "first of them");
  await page.getByRole("button", { name: "1 new" }).click();
  const row = page.getByRole("row").filter({ hasText: "first of them" });
  await row.getByText("Completed").waitFor();
  await row.getByText("kB").waitFor();
  assert.deepEqual(
    asked.filter((path) => path.startsWith("/v1/jobs/job-")),
    [],
    "the change that a job has ended has its figures",
  );
  await checkDeletion(page, dashboard, file);
  await page.getByRole("link", { name: "Failed" }).click();
  await page.getByText("No jobs match these filters").waitFor();
  assert.ok(page.url().endsWith("/jobs?status=Failed"));
  await checkAgesOnOtherClock(page, dashboard);
}

async function checkDeletion(page: Page, dashboard: Dashboard, file: string): Promise<void> {
  const { id } = await startJob(dashboard, file, "second of them");
  await page.getByRole("button", { name: "1 new" }).click();
  const row = page.getByRole("row").filter({ hasText: "second of them" });
  await row.getByText("Completed").waitFor();
  await dashboard.client.callEmpty("deleteJob", { params: { id } });
  await row.waitFor({ state: "detached" });
}

const hourMs = 3_600_000;

/** Opens the list on a machine whose clock is wrong. */
async function checkAgesOnOtherClock(signedIn: Page, { openBrowser, origin }: Dashboard) {
  const storageState = await signedIn.context().storageState();
  for (const hours of [-36, 36]) {
    const page = await openBrowser({ storageState });
    await page.clock.setSystemTime(Date.now() + hours * hourMs);
    await page.goto(`${origin}/jobs`);
    const row = page.getByRole("row").filter({ hasText: "first of them" });
    assert.match(await row.locator("time").innerText(), /^(now|\d+ (s|min) ago)$/);
    await page.context().close();
  }
}

async function cancelAndRepeat(t: TestContext, dashboard: Dashboard): Promise<void> {
  const host = await listenLocally(t, createServer());
  const page = await signInByLink(dashboard);
  const body = { model: { source: `${host}/silent.onnx` }, target: "cpu" };
  const job = await dashboard.client.call("startCompression", { body });
  await page.goto(`${dashboard.origin}/jobs/${job.id}`);
  await page.getByRole("button", { name: "Cancel job" }).click();
  await page.locator("h1 .status").getByText("Cancelled").waitFor();
  const by = page.getByRole("status").getByText(/^Cancelled by \S/);
  const [, name = ""] = /^Cancelled by (.+?)( after .*)?$/.exec(await by.innerText()) ?? [];
  await page.reload();
  const fact = page.locator("dl.facts div").filter({ hasText: "Cancelled by" });
  assert.equal(await fact.locator("dd").innerText(), name);
  await page.getByRole("button", { name: "Run again" }).click();
  await page.waitForURL((url) => !url.href.endsWith(job.id));
  await page.getByRole("button", { name: "Cancel job" }).click();
  await page.locator("h1 .status").getByText("Cancelled").waitFor();
}

/** A job ends after the page has read it, and before the page hears of changes. */
async function endBeforeStream(t: TestContext, dashboard: Dashboard): Promise<void> {
  const { client, origin } = dashboard;
  const host = await listenLocally(t, createServer());
  const page = await signInByLink(dashboard);
  const body = { model: { source: `${host}/silent.onnx` }, target: "cpu" };
  const { id } = await client.call("startCompression", { body });
  const ended = Promise.withResolvers<void>();
  await page.route("**/v1/events*", async (route) => {
    await ended.promise;
    await route.continue();
  });
  await page.goto(`${origin}/jobs/${id}`);
  await page.getByRole("button", { name: "Cancel job" }).waitFor();
  await client.call("cancelJob", { params: { id } });
  await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  ended.resolve();
  await page.locator("h1 .status").getByText("Cancelled").waitFor();
}

const hostile = `<img src=x onerror="document.title='hit'"><script>document.title='hit'</script>`;

/** A job and a batch in which everything that takes any text has HTML. @returns their addresses */
async function submitHostile(t: TestContext, { client }: Dashboard) {
  const { source } = await client.uploadModel(await writeProduct(t, hostile));
  const target = "cpu";
  const evaluation = { latencyBudgetSeconds: 0 };
  const { id } = await client.call("startCompression", {
    body: { name: hostile, model: { source }, target, recipe: { evaluation } },
  });
  await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  const named = { name: hostile, suite: hostile, models: [{ source }], targets: [target] };
  const recipe = { evaluation: { level: "none" as const } };
  const batch = await client.call("submitBatch", { body: { ...named, recipe } });
  return { job: `/jobs/${id}`, batch: `/batches/${batch.id}` };
}

async function openHostile(t: TestContext, dashboard: Dashboard): Promise<void> {
  const page = await signInByLink(dashboard);
  const { job, batch } = await submitHostile(t, dashboard);
  const written = encodeURIComponent(hostile);
  const texts = (role: "row" | "heading" | "log" | "link" | "button" | "table") =>
    page.getByRole(role).getByText(hostile).filter({ visible: true }).first();
  const places: readonly [string, readonly Locator[]][] = [
    ["/jobs", [texts("row")]],
    [`/jobs?label=${written}`, [texts("link")]],
    [job, [texts("heading"), texts("log"), texts("table")]],
    ["/batches", [texts("row")]],
    // Not from the job's page itself, which may not listen to its address yet.
    [`${job}#graph`, [texts("button")]],
    [batch, [texts("heading")]],
    ["/suites", [texts("link")]],
    [`/suites/${written}`, [texts("heading")]],
  ];
  for (const [path, shown] of places) {
    await page.goto(dashboard.origin + path);
    for (const text of shown) await text.waitFor();
    assert.equal(await page.locator("body img, body script").count(), 0, path);
    assert.notEqual(await page.title(), "hit");
  }
  assert.deepEqual(dashboard.complaints, []);
}

test("the page says that the service is away, and goes on when it is back", { skip }, async (t) => {
  const environment = { MOS_PORT: String(await findFreePort()) };
  const first = await openDashboard(t, { environment });
  const page = await signInByLink(first);
  const openTargets = () => page.getByRole("link", { name: "Targets", exact: true }).click();
  const openJobs = () => page.getByRole("link", { name: "Jobs", exact: true }).click();
  // The code of a page is loaded when it is first opened.
  await openTargets();
  await page.getByRole("heading", { name: "cpu", exact: true }).waitFor();
  await openJobs();
  await page.getByText("Live").waitFor();
  first.process.kill("SIGKILL");
  // Nothing says that it is live beside what says that it is not.
  await openTargets();
  await page.getByRole("alert").waitFor();
  await openJobs();
  await page.getByText(/^Disconnected since \d\d:\d\d:\d\d \S+, reconnecting$/).waitFor();
  assert.equal(await page.locator(".live:not(.is-away)").count(), 0);
  await openTargets();
  await page.getByRole("alert").waitFor();
  const again = await openDashboard(t, { from: first, environment });
  await page.getByRole("heading", { name: "cpu", exact: true }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  await openJobs();
  await page.locator(".live:not(.is-away)").waitFor();
  await page.getByText("No jobs yet").waitFor();
  await startJob(again, await writeProduct(t), "after it");
  await page.getByRole("button", { name: "1 new" }).waitFor();
});
