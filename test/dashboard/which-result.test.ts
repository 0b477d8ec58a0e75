import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import type { JobDetail } from "../../src/contract/jobs/job.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import {
  assertFitsAllLooks,
  assertNoComplaints,
  type Dashboard,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";
import { writeBranches, writeProduct } from "./write-product.ts";

test("the page says which result may be shipped", { skip: chromiumMissing }, async (t) => {
  const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true", MOS_WORKERS: "1" };
  const dashboard = await openDashboard(t, { environment });
  const page = await signInByLink(dashboard);
  // Of one name, the older version with the smaller result.
  const older = await runModel(dashboard, await writeProduct(t), "net");
  const newer = await runModel(dashboard, await writeBranches(t), "net");
  const other = await runModel(dashboard, await writeProduct(t, "-2"), "other");
  await t.test("a figure near its limit shows on which side it is", () =>
    showLimits(page, dashboard, older),
  );
  await t.test("results of an older version are not offered", async () => {
    await page.goto(`${dashboard.origin}/models/net`);
    const best = page.getByRole("region", { name: "Best result for each target" });
    await best.getByRole("row", { name: /^cpu/ }).waitFor();
    await page.getByText("of the newest version with results").waitFor();
    await best.locator(`a[href="/jobs/${newer.id}"]`).waitFor();
    await assertFitsAllLooks(page, "a model of two versions");
  });
  await t.test("sizes of different models are not ranked", async () => {
    const open = async (one: JobDetail, two: JobDetail) => {
      await page.goto(`${dashboard.origin}/compare?job=${one.id}&job=${two.id}`);
      return page.getByRole("row", { name: /^Size \d/ }).innerText();
    };
    assert.doesNotMatch(await open(newer, other), /best/);
    assert.match(await open(newer, older), /best/);
  });
  await t.test("jobs that run have no verdict yet", () => compareRunning(t, page, dashboard));
  await t.test("a prediction and a link are of what is chosen", () =>
    changeChoices(page, dashboard, older),
  );
  await t.test("long names widen no page", () => openLongNames(page, dashboard, older));
  await t.test("weights that are folded away again are not searched", () =>
    foldWeights(page, dashboard, older),
  );
  assertNoComplaints(dashboard);
});

async function runModel({ client }: Dashboard, file: string, name: string): Promise<JobDetail> {
  const { source } = await client.uploadModel(file);
  const recipe = { minElements: 1, evaluation: { level: "none" as const } };
  const { id } = await client.call("startCompression", {
    body: { model: { source, name }, target: "cpu", recipe },
  });
  return client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
}

/** The same job with other figures, which differ from their limits by less than a digit. */
async function showLimits(page: Page, { origin }: Dashboard, job: JobDetail): Promise<void> {
  const times = { p50Ms: 10, runs: 20 };
  const ratios = { ratio: 1.3, ratioLow: 0.5, ratioHigh: 3, sessions: 2 };
  const { size = { originalBytes: 0, resultBytes: 0 } } = job.telemetry;
  const json = {
    ...job,
    gateLimits: { maxSizeRatio: 0.5, minSqnrDb: 24.5, minCosine: 0.99, maxLatencyRatio: 1.1 },
    gates: [
      { gate: "maxSizeRatio", limit: 0.5, actual: 0.5004, passed: false, level: "fail" },
      { gate: "minSqnrDb", limit: 24.5, actual: 24.7, passed: true, level: "fail" },
      { gate: "minCosine", limit: 0.99, actual: 0.9831, passed: false, level: "fail" },
      {
        gate: "maxLatencyRatio",
        limit: 1.1,
        actual: 1.3,
        passed: false,
        level: "warn",
        note: "The latency was timed in 2 sessions: too few for an interval",
      },
    ].map((gate) => ({ ...gate, baseline: null })),
    telemetry: {
      ...job.telemetry,
      size: { ...size, ratio: 0.5004 },
      accuracy: {
        level: "outputs",
        data: "generated",
        samples: 8,
        outputs: [],
        sqnrDb: 24.7,
        cosine: 0.9831,
      },
      latency: { ...ratios, original: times, result: times },
    },
  };
  await page.route(`**/v1/jobs/${job.id}`, (route) => route.fulfill({ json }));
  await page.goto(`${origin}/jobs/${job.id}`);
  const card = (title: string) => page.locator(".figure", { hasText: title });
  await card("Size").getByText("fails ≤ 50 %").waitFor();
  await card("Size").getByText("50.04 % of").waitFor();
  await card("Accuracy").getByText("passes ≥ 24.5 dB").waitFor();
  await card("Latency").getByText("uncertain: ≤ ×1.10").waitFor();
  const cosine = page.getByRole("listitem").filter({ hasText: "Cosine similarity 0.9831" });
  await cosine.getByText("did not pass: fail").waitFor();
  await page.setViewportSize({ width: 360, height: 800 });
  const finding = page.getByRole("listitem").filter({ hasText: "Has 50.04 % of" });
  const { height = Infinity } = (await finding.boundingBox()) ?? {};
  assert.ok(height < 300, `what to look at first is ${height} pixels high on a phone`);
  await assertFitsAllLooks(page, "figures near their limits");
  await page.unroute(`**/v1/jobs/${job.id}`);
}

async function compareRunning(t: TestContext, page: Page, dashboard: Dashboard): Promise<void> {
  const { client, origin } = dashboard;
  const host = await listenLocally(t, createServer());
  const body = { model: { source: `${host}/silent.onnx` }, target: "cpu" };
  const { id } = await client.call("startCompression", { body });
  await page.goto(`${origin}/compare?job=${id}`);
  await page.getByText("No result passes its gates yet.").waitFor();
  await page.goto(`${origin}/jobs`);
  await page.getByRole("textbox", { name: "Find jobs" }).fill("status:sharding");
  await page.keyboard.press("Enter");
  // No tab is of this status only.
  await page.getByRole("link", { name: "Remove the filter status Sharding" }).click();
  await page.waitForURL((url) => url.search === "");
  await client.call("cancelJob", { params: { id } });
  await page.goto(`${origin}/compare?job=${id}`);
  await page.getByText("None of these jobs has a result.").waitFor();
}

/** Ends on the page of the job. */
async function changeChoices(page: Page, { origin }: Dashboard, job: JobDetail): Promise<void> {
  await page.goto(`${origin}/new?from=${job.id}`);
  await page.getByRole("button", { name: "Predict size" }).click();
  const predicted = page.getByRole("status").getByText(/; the job takes about/);
  await predicted.waitFor();
  await page.getByLabel("Scheme").selectOption("fp16");
  await predicted.waitFor({ state: "detached" });
  page.once("dialog", (dialog) => void dialog.accept());
  await page.goto(`${origin}/jobs/${job.id}`);
  await page.locator("summary").getByText("More").click();
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("button", { name: "Create a link" }).click();
  const link = page.getByRole("region", { name: "Link to the result" });
  await link.waitFor();
  await page.getByLabel("File").selectOption("report.json");
  await link.waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
}

async function openLongNames(page: Page, { client, origin }: Dashboard, job: JobDetail) {
  const [word, model] = ["n".repeat(200), "m".repeat(100)];
  const { id } = await client.call("submitBatch", {
    body: {
      name: word,
      suite: word,
      models: [{ source: job.model.source, name: model }],
      targets: ["cpu"],
      revision: { sha: "a".repeat(40), branch: word },
    },
  });
  await client.call("createToken", { body: { name: "t".repeat(100), scopes: ["jobs:read"] } });
  const url = `https://hooks.invalid/${word}`;
  await client.call("createWebhook", { body: { url, events: ["job.*"], description: word } });
  const texts = {
    [`/batches/${id}`]: word,
    "/batches": word,
    "/suites": word,
    [`/suites/${word}`]: word,
    "/tokens": "t".repeat(100),
    "/webhooks": word,
    [`/models/${model}`]: model,
    [`/jobs/${job.id}`]: job.id,
  };
  for (const [path, text] of Object.entries(texts)) {
    await page.goto(origin + path);
    await page.locator("main").getByText(text).first().waitFor();
    for (const width of [360, 640, 800, 1024]) {
      await page.setViewportSize({ width, height: 800 });
      const hidden = await page.locator("html").evaluate((html) => {
        return html.scrollWidth - html.clientWidth;
      });
      assert.ok(hidden <= 0, `${path} is ${hidden} pixels wider than ${width}`);
      const cut = await page.locator(".matrix th").evaluateAll((cells) => {
        return cells.filter((cell) => cell.scrollWidth > cell.clientWidth).length;
      });
      assert.equal(cut, 0, `names lie over other cells at ${width} pixels`);
    }
  }
}

/** As if the job's model had many weights. */
async function foldWeights(page: Page, { origin }: Dashboard, job: JobDetail): Promise<void> {
  await page.route("**/artifacts/report.json", async (route) => {
    const response = await route.fetch();
    const report = (await response.json()) as { readonly weights: readonly object[] };
    const weights = Array.from({ length: 30 }, (_, index) => {
      return { ...report.weights[0], name: `weight-${index}` };
    });
    await route.fulfill({ response, json: { ...report, weights } });
  });
  await page.goto(`${origin}/jobs/${job.id}`);
  const rows = page.locator("table.weights tbody tr");
  await page.getByRole("button", { name: "Show all weights" }).click();
  await page.getByRole("searchbox", { name: "Find weights" }).fill("weight-29");
  await page.getByLabel("Order of the weights").selectOption("by name");
  await page.getByText("30 of 30 changed, by name").waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByRole("button", { name: "Show fewer" }).click();
  await page.getByText("30 of 30 changed, worst first").waitFor();
  assert.equal(await rows.count(), 12);
}
