import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import type { Page, Route } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { until } from "../support/until.ts";
import {
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";

const skip = chromiumMissing;
const widths = [390, 1024, 1440];

/** Jobs that wait for the only worker: the first one's host never answers. */
async function submitJobs({ client }: Dashboard, host: string, count: number) {
  const models = Array.from({ length: count / 2 }, (_, i) => ({
    source: `${host}/${i}.onnx`,
    name: i % 10 === 0 ? `text-detection-${i}` : `model-${i}`,
  }));
  return client.call("submitBatch", {
    body: { name: "many", models, targets: ["cpu", "cpu-int8"], labels: { team: "vision" } },
  });
}

test("lists of jobs, batches and the audit, longer than a page", { skip }, async (t) => {
  const host = await listenLocally(t, createServer());
  const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true", MOS_WORKERS: "1" };
  const dashboard = await openDashboard(t, { environment });
  const { id, jobs } = await submitJobs(dashboard, host, 400);
  const page = await signInByLink(dashboard);
  await t.test("the list has the columns of its head and no more", () =>
    checkColumns(page, dashboard),
  );
  await t.test("its place is kept on the way back", () => checkPlace(page, dashboard));
  await t.test("a search takes several words, parts of names, and names what is unknown", () =>
    checkSearch(page, dashboard),
  );
  await t.test("it misses nothing while it loads, nor what enters it late", () =>
    checkLateChanges(page, dashboard, jobs[399]?.id ?? ""),
  );
  await dashboard.client.call("cancelBatch", { params: { id } });
  await t.test("what is new moves nothing, and counts only where it fits", () =>
    checkNew(page, dashboard),
  );
  await t.test("a job that never ran has no time", async () => {
    await page.goto(`${dashboard.origin}/jobs?status=Cancelled`);
    await page.getByRole("cell", { name: "not run", exact: true }).first().waitFor();
  });
  await t.test("chosen jobs are deleted as far as they can be, and it is sorted", () =>
    checkBulk(page, dashboard),
  );
  await t.test("every batch can be reached", () => checkBatches(page, dashboard));
  await t.test("every entry of the audit can be reached", () => checkAudit(page, dashboard, id));
  assertNoComplaints(dashboard);
});

async function checkColumns(page: Page, { origin }: Dashboard): Promise<void> {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(`${origin}/jobs`);
    await page.locator("tbody tr.spacer").last().waitFor({ state: "attached" });
    const gap = await page.locator("table.jobs").evaluate((table) => {
      const heads = [...table.querySelectorAll("th")].filter((th) => th.offsetWidth > 0);
      const right = Math.max(...heads.map((th) => th.getBoundingClientRect().right));
      return Math.abs(table.getBoundingClientRect().right - right);
    });
    assert.ok(gap < 2, `at ${width} pixels a column without a head is ${gap} pixels wide`);
    const names = page.locator("a.row-link").first();
    const cut = await names.evaluate(({ parentElement }) => {
      return (parentElement?.scrollWidth ?? 0) - (parentElement?.clientWidth ?? 0);
    });
    assert.ok(cut <= 0, `at ${width} pixels the names are cut by ${cut} pixels`);
    assert.deepEqual(await findBarriers(page), []);
  }
}

async function scrollTo(page: Page, top: number): Promise<void> {
  await page.locator("html").evaluate((html, y) => html.scrollTo(0, y), top);
}

function readScroll(page: Page): Promise<number> {
  return page.locator("html").evaluate((html) => html.scrollTop);
}

async function checkPlace(page: Page, { origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/jobs`);
  const before = 6000;
  const anyLink = page.locator("a.row-link").nth(15);
  // Further rows are loaded near the end of those that are there, and drawn where they are in view.
  await until("the list is scrolled, and its rows are drawn", async () => {
    await scrollTo(page, before);
    const box = await anyLink.boundingBox();
    return (await readScroll(page)) === before && box !== null && box.y > 0 && box.y < 800;
  });
  const link = page.locator(`a.row-link[href="${await anyLink.getAttribute("href")}"]`);
  const name = await link.innerText();
  await page
    .getByRole("checkbox", { name: new RegExp(`^Select ${name} `) })
    .first()
    .check();
  await link.click();
  await page.waitForURL(/\/jobs\/job-/);
  await page.locator("h1").getByText(name).waitFor();
  await page.goBack();
  await page.locator("table.jobs").waitFor();
  await until("the list is where it was", async () => (await readScroll(page)) === before);
  await page.getByRole("toolbar").getByText("1 selected").waitFor();
  await page.getByRole("button", { name: "Clear the selection" }).click();
}

async function search(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Find jobs" }).fill(text);
  await page.keyboard.press("Enter");
}

async function checkSearch(page: Page, { origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/jobs`);
  await search(page, "label:team=vision target:cpu ETECT");
  await page.getByText("20 jobs").waitFor();
  assert.ok(page.url().endsWith("/jobs?target=cpu&label=team%3Dvision&search=ETECT"));
  await search(page, "owner:ada");
  await page.getByText('There is no filter "owner".').waitFor();
  assert.ok(page.url().includes("search=ETECT"), "a search that is not understood leads nowhere");
  assert.deepEqual(await findBarriers(page), []);
  await search(page, "target:CPU");
  await page.getByText('target: Is "CPU" and must be 1 to 63 lower-case letters').waitFor();
  assert.equal(await page.locator(".ghost").count(), 0, "nothing is loaded any more");
  assert.deepEqual(await findBarriers(page), []);
  await page.goBack();
  await search(page, "status:failed");
  await page.waitForURL(/status=Failed/);
  await page.getByRole("link", { name: "Remove the filter model has ETECT" }).click();
  await page.waitForURL((url) => !url.search.includes("search="));
}

async function startFailingJob({ client }: Dashboard, name: string) {
  const model = { source: "https://models.invalid/new.onnx", name };
  return client.call("startCompression", { body: { model, target: "cpu" } });
}

function findRow(page: Page, id: string) {
  return page.getByRole("row").filter({ has: page.locator(`a[href="/jobs/${id}"]`) });
}

/** @param pending id of a job that waits */
async function checkLateChanges(page: Page, dashboard: Dashboard, pending: string): Promise<void> {
  const cancel = (id: string) => dashboard.client.call("cancelJob", { params: { id } });
  const oneNew = page.getByRole("button", { name: "1 new" });
  await page.goto(`${dashboard.origin}/jobs?search=late`);
  await page.getByText("No jobs match these filters").waitFor();
  const first = await startFailingJob(dashboard, "late-1");
  await oneNew.click();
  const cancelled = findRow(page, first.id).getByText("Cancelled", { exact: true });
  await findRow(page, first.id).waitFor();
  const second = await startFailingJob(dashboard, "late-2");
  const answerLate = async (route: Route) => {
    const response = await route.fetch();
    await cancel(first.id);
    await cancelled.waitFor();
    await route.fulfill({ response });
  };
  await page.route("**/v1/jobs/summaries*", answerLate, { times: 1 });
  await oneNew.click();
  await findRow(page, second.id).waitFor();
  assert.equal(await cancelled.count(), 1, "a page that was read before takes nothing back");

  await page.goto(`${dashboard.origin}/jobs?status=Cancelled`);
  await findRow(page, first.id).waitFor();
  await cancel(pending);
  await oneNew.waitFor();
  await cancel(second.id);
}

async function checkNew(page: Page, dashboard: Dashboard): Promise<void> {
  await page.goto(`${dashboard.origin}/jobs?search=zzz`);
  await page.getByText("No jobs match these filters").waitFor();
  const { id } = await startFailingJob(dashboard, "other");
  await dashboard.client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  await page.waitForTimeout(1000);
  assert.equal(await page.getByRole("button", { name: /new$/ }).count(), 0);
  await startFailingJob(dashboard, "a-zzz-model");
  await page.getByRole("button", { name: "1 new" }).click();
  await page.getByRole("link", { name: "a-zzz-model" }).waitFor();

  await page.goto(`${dashboard.origin}/jobs`);
  const row = page.locator("a.row-link").first();
  await row.waitFor();
  const { y } = (await row.boundingBox()) ?? { y: 0 };
  await startFailingJob(dashboard, "another");
  await page.getByRole("button", { name: "1 new" }).waitFor();
  assert.equal((await row.boundingBox())?.y, y, "rows stay while something is new");
  await page.route("**/v1/jobs/summaries*", (route) => route.abort());
  await page.getByRole("button", { name: "1 new" }).click();
  await page.getByRole("alert").waitFor();
  assert.equal((await row.boundingBox())?.y, y, "rows stay below an error");
  await page.unroute("**/v1/jobs/summaries*");

  const more = /summaries\?.*cursor=/;
  const asked = Promise.withResolvers<Route>();
  await page.route(more, (route) => asked.resolve(route), { times: 1 });
  await page.reload();
  const delayed = await asked.promise;
  const { id: wanted } = await startFailingJob(dashboard, "wanted");
  await page.getByRole("button", { name: "1 new" }).click();
  await delayed.continue();
  await findRow(page, wanted).waitFor();

  await page.goto(`${dashboard.origin}/jobs?model=https://models.invalid/source.onnx`);
  await page.getByText("No jobs match these filters").waitFor();
  const models = ["source", "another"].map((name) => {
    return { source: `https://models.invalid/${name}.onnx`, name: `of-${name}` };
  });
  await dashboard.client.call("submitBatch", { body: { models, targets: ["cpu"] } });
  await page.getByRole("button", { name: "1 new" }).click();
  await page.getByRole("link", { name: "of-source" }).waitFor();
}

async function checkBulk(page: Page, { client, origin }: Dashboard): Promise<void> {
  const models = [{ source: "https://models.invalid/m.onnx", name: "b-zzz-model" }];
  const { jobs } = await client.call("submitBatch", { body: { models, targets: ["cpu"] } });
  const params = { id: jobs[0]?.id ?? "" };
  await client.call("cancelJob", { params });
  await page.goto(`${origin}/jobs?search=zzz`);
  await page.getByRole("checkbox", { name: /^Select a-zzz-model/ }).check();
  await page.getByRole("checkbox", { name: /^Select b-zzz-model/ }).check();
  await page.getByRole("button", { name: "Delete 2" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete 2 jobs" });
  assert.deepEqual(await findBarriers(page), []);
  await dialog.getByRole("button", { name: "Delete", exact: true }).click();
  // A job of a batch can only be deleted with it.
  await page.getByText(/^1 job deleted, 1 left\. b-zzz-model/).waitFor();
  await findRow(page, params.id).waitFor();
  await page.getByRole("link", { name: "a-zzz-model" }).waitFor({ state: "detached" });
  assert.deepEqual(await findBarriers(page), []);
  await page.getByLabel("Order").selectOption("longest");
  await page.waitForURL(/sort=longest/);
  await findRow(page, params.id).waitFor();
}

async function checkBatches(page: Page, { client, origin }: Dashboard): Promise<void> {
  const models = [{ source: "https://models.invalid/m.onnx" }];
  for (let index = 0; index < 56; index++) {
    const suite = index === 0 ? "the-first" : "nightly";
    const body = { name: `batch-${index}`, suite, models, targets: ["cpu"] };
    await client.call("submitBatch", { body });
  }
  await page.goto(`${origin}/batches`);
  await page.getByText("50 batches shown").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText("59 batches").waitFor();
  await page.getByRole("link", { name: "many" }).waitFor();
  assert.deepEqual(await findBarriers(page), []);
  await page.getByRole("textbox", { name: "Batches of a suite" }).fill("the-first");
  await page.keyboard.press("Enter");
  await page.getByText("1 batch", { exact: true }).waitFor();
  assert.ok(page.url().endsWith("/batches?suite=the-first"));
}

async function checkAudit(page: Page, { client, origin }: Dashboard, id: string): Promise<void> {
  for (let index = 0; index < 60; index++) {
    await client.call("createToken", { body: { name: `token-${index}`, scopes: ["jobs:read"] } });
  }
  await page.goto(`${origin}/audit`);
  await page.getByText("100 entries shown").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText(/^1\d\d entries$/).waitFor();
  await page.getByRole("cell", { name: "Create token" }).first().waitFor();
  await page.getByRole("row", { name: "Submit batch" }).getByRole("link", { name: id }).click();
  await page.getByRole("region", { name: "Models and targets" }).waitFor();
  const heads = page.locator(".matrix thead th:not(:first-child)");
  const widths = await heads.evaluateAll((found) => found.map(({ offsetWidth }) => offsetWidth));
  assert.deepEqual(widths, Array(2).fill(widths[0]));
}
