import assert from "node:assert/strict";
import test from "node:test";
import type { Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { until } from "../support/until.ts";
import {
  assertFitsAllLooks,
  assertNoComplaints,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";

const paths = [
  "/jobs",
  "/batches",
  "/suites",
  "/suites/nightly",
  "/new",
  "/new-batch",
  "/models",
  "/models/none",
  "/compare",
  "/jobs/job-00000000000000000000000000",
  "/batches/batch-00000000000000000000000000",
  "/targets",
  "/terms",
  "/tokens",
  "/webhooks",
  "/audit",
  "/project",
  "/account",
  "/health",
  "/nothing",
];
/** First view: everything that the browser loads, compressed. */
const firstViewBytes = 200 * 1024;

test("pages of a service without jobs", { skip: chromiumMissing }, async (t) => {
  const dashboard = await openDashboard(t);
  await t.test("the first view is small", async () => {
    const page = await dashboard.openBrowser();
    let bytes = 0;
    page.on("response", (response) => {
      void response
        .request()
        .sizes()
        .then(({ responseBodySize }) => (bytes += responseBodySize));
    });
    await signInByLink(dashboard, page);
    await page.getByText("No jobs yet").waitFor();
    await until("the first view is measured", () => bytes > 20_000);
    assert.ok(bytes < firstViewBytes, `${bytes} bytes`);
    const asked = noteRequests(page);
    await page.reload();
    await page.getByText("No jobs yet").waitFor();
    assertAskedOnce(asked, ["/v1/self", "/v1/jobs/summaries"]);
    assert.equal(asked.filter((path) => path.endsWith(".js")).length, 2);
    await page.route("**/*.js", () => undefined);
    await page.goto(page.url(), { waitUntil: "commit" });
    await page.getByText("Model Optimization").waitFor();
    await page.locator("main .ghost").first().waitFor();
  });

  await t.test(
    "programs get pages and their icon too, and no page where there is none",
    async () => {
      const { origin } = dashboard;
      const ask = (path: string) => fetch(origin + path, { headers: { accept: "*/*" } });
      for (const path of ["/", "/jobs", "/jobs/job-1", "/models", "/sign-in"]) {
        const answer = await ask(path);
        assert.equal(answer.status, 200, path);
        assert.match(answer.headers.get("content-type") ?? "", /^text\/html/);
      }
      const icon = await ask("/favicon.ico");
      assert.equal(icon.headers.get("content-type"), "image/svg+xml");
      for (const path of ["/nothing", "/jobsite"])
        assert.equal((await ask(path)).status, 404, path);
    },
  );

  await t.test("no page has a barrier, light, dark or on a phone", async () => {
    const page = await signInByLink(dashboard);
    for (const path of paths) {
      await page.goto(dashboard.origin + path);
      await page.locator("main :is(h1, h2)").first().waitFor();
      await assertFitsAllLooks(page, path);
    }
    assertNoComplaints(dashboard);
  });

  await t.test("pages of a job and a batch are sent what they show", async () => {
    const models = [{ source: "https://models.invalid/m.onnx" }];
    const body = { models, targets: ["cpu"] };
    const { id, jobs } = await dashboard.client.call("submitBatch", { body });
    const [job = { id: "" }] = jobs;
    await dashboard.client.call("getJob", {
      params: { id: job.id },
      headers: { prefer: "wait=60" },
    });
    const page = await signInByLink(dashboard);
    const asked = noteRequests(page);
    await page.goto(`${dashboard.origin}/jobs/${job.id}`);
    await page.getByRole("heading", { name: "Log" }).waitFor();
    assertAskedOnce(asked, ["/v1/self", `/v1/jobs/${job.id}`]);
    asked.length = 0;
    await page.goto(`${dashboard.origin}/batches/${id}`);
    await page.getByRole("table").waitFor();
    assertAskedOnce(asked, ["/v1/self", `/v1/batches/${id}`, "/v1/jobs/summaries"]);
  });

  await t.test("a page or a dialog whose code is gone says so, and is loaded again", async () => {
    const page = await signInByLink(dashboard);
    const gone = /\/assets\/(batches-page|key-help)-.*\.js$/;
    await page.route(gone, (route) => route.fulfill({ status: 404 }));
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "This could not be loaded" }).waitFor();
    assert.deepEqual(await findBarriers(page), []);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Batches", exact: true }).click();
    await page.getByRole("heading", { name: "This page could not be loaded" }).waitFor();
    await assertFitsAllLooks(page, "a page that was not loaded");
    await page.unroute(gone);
    await page.getByRole("button", { name: "Load again" }).click();
    await page.getByRole("heading", { name: "Batches", level: 1 }).waitFor();
  });

  await t.test("a service that does not answer, and a job that is deleted, are said", async () => {
    const { client, origin } = dashboard;
    const page = await signInByLink(dashboard);
    const model = { source: "https://models.invalid/m.onnx" };
    const { id } = await client.call("startCompression", { body: { model, target: "cpu" } });
    await page.goto(`${origin}/jobs/${id}`);
    await page.getByRole("log").waitFor();
    // It may have failed before.
    await client.call("cancelJob", { params: { id } }).catch(() => undefined);
    await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
    await client.callEmpty("deleteJob", { params: { id } });
    await page.getByRole("heading", { name: "No such job" }).waitFor();
    assert.equal(await page.getByRole("log").count(), 0);
    await page.route("**/v1/self", (route) => route.fulfill({ status: 500, body: "broken" }));
    await page.reload();
    await page.getByRole("heading", { name: "The service does not answer" }).waitFor();
    assert.deepEqual(await findBarriers(page), []);
    await page.unroute("**/v1/self");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "No such job" }).waitFor();
  });
});

/** The paths of all requests of a page from now on. */
function noteRequests(page: Page): string[] {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  return asked;
}

/** What is sent ahead is not asked for again. */
function assertAskedOnce(asked: readonly string[], paths: readonly string[]): void {
  for (const path of paths) {
    assert.equal(asked.filter((each) => each === path).length, 1, `${path} is asked for once`);
  }
}
