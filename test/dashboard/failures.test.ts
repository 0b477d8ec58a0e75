import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { createSignInLink } from "../../src/auth/sign-in.ts";
import { withRecords } from "../../src/service/commands/with-records.ts";
import { recordsPlace } from "../../src/service/storage-folder/data-directory.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { until } from "../support/until.ts";
import {
  type Dashboard,
  endSessions,
  openDashboard,
  plainHost,
  signInByLink,
} from "./open-dashboard.ts";
import { writeProduct } from "./write-product.ts";

const skip = chromiumMissing;

test("what fails is said, and what was lost goes on", { skip }, async (t) => {
  const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true", MOS_WORKERS: "1" };
  const dashboard = await openDashboard(t, { environment });
  const host = await listenLocally(t, createServer());
  const parts = {
    "a report that cannot be loaded is said": loseReport,
    "failed jobs of a batch are tried again in another one, which is opened": retryBatch,
    "a deletion that fails says so in its dialog": refuseDeletion,
    "a sign-out that does not reach the service is said": loseSignOut,
    "a log goes on after a new sign-in": signInAgain,
    "a reader of a log is not taken to its end": readLog,
    "an address without TLS has all but notifications": openPlain,
  };
  for (const [name, part] of Object.entries(parts)) {
    await t.test(name, (subtest) => part(subtest, dashboard, host));
  }
});

async function loseReport(t: TestContext, dashboard: Dashboard): Promise<void> {
  const { client, origin } = dashboard;
  const { source } = await client.uploadModel(await writeProduct(t));
  const recipe = { evaluation: { level: "none" as const } };
  const { id } = await client.call("startCompression", {
    body: { model: { source }, target: "cpu", recipe },
  });
  await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  const page = await signInByLink(dashboard);
  const report = "**/artifacts/report.json";
  await page.route(report, (route) => route.fulfill({ status: 503 }));
  await page.goto(`${origin}/jobs/${id}`);
  await page.getByText("report.json cannot be loaded: status 503").waitFor();
  await page.unroute(report);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Weights" }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
}

async function retryBatch(_: TestContext, dashboard: Dashboard): Promise<void> {
  const { client, origin } = dashboard;
  const models = [{ source: "https://models.invalid/m.onnx", name: "gone" }];
  const { id, jobs } = await client.call("submitBatch", { body: { models, targets: ["cpu"] } });
  const params = { id: jobs[0]?.id ?? "" };
  await client.call("getJob", { params, headers: { prefer: "wait=60" } });
  const page = await signInByLink(dashboard);
  await page.goto(`${origin}/batches/${id}`);
  await page.getByRole("button", { name: "Retry 1 failed job", exact: true }).dblclick();
  await page.waitForURL(
    (url) => url.pathname.startsWith("/batches/batch-") && !url.href.endsWith(id),
  );
  await page.getByText("gone").first().waitFor();
  const { batches } = await client.call("listBatches", {});
  assert.equal(batches.length, 2);
  await page.goto(`${origin}/jobs/${params.id}`);
  await page.locator("summary").getByText("More").click();
  await page.getByRole("button", { name: "Copy as" }).waitFor();
  // It can only be deleted with its batch.
  assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
}

async function refuseDeletion(_: TestContext, dashboard: Dashboard): Promise<void> {
  const { client, origin } = dashboard;
  await client.call("createWebhook", {
    body: { url: "https://hooks.invalid/x", events: ["job.*"] },
  });
  const page = await signInByLink(dashboard);
  await page.goto(`${origin}/webhooks`);
  await page.route("**/v1/webhooks/*", (route) =>
    route.request().method() === "DELETE" ? route.abort() : route.continue(),
  );
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Delete webhook" }).click();
  await dialog.getByRole("alert").getByText("The service cannot be reached").waitFor();
  await page.unroute("**/v1/webhooks/*");
  await dialog.getByRole("button", { name: "Delete webhook" }).click();
  await page.getByText("No webhooks yet").waitFor();
}

async function loseSignOut(_: TestContext, dashboard: Dashboard): Promise<void> {
  const page = await signInByLink(dashboard);
  await page.route("**/v1/sessions/self", (route) => route.abort());
  await page.locator("details.person summary").click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("alert").getByText("The service cannot be reached").waitFor();
  await page.setViewportSize({ width: 360, height: 800 });
  const { x = 0, width = 0 } = (await page.getByRole("alert").boundingBox()) ?? {};
  assert.ok(x >= 0 && width > 280 && x + width <= 360, `on a phone it is ${width} pixels wide`);
  await page.getByRole("alert").getByRole("button", { name: "Close" }).click();
  await page.getByRole("alert").waitFor({ state: "detached" });
}

async function startSilent({ client }: Dashboard, host: string): Promise<string> {
  const body = { model: { source: `${host}/silent.onnx` }, target: "cpu" };
  return (await client.call("startCompression", { body })).id;
}

async function signInAgain(_: TestContext, dashboard: Dashboard, host: string): Promise<void> {
  const { client, origin } = dashboard;
  const id = await startSilent(dashboard, host);
  const page = await openSignedIn(dashboard);
  await page.goto(`${origin}/jobs/${id}`);
  await page.getByRole("log").getByText("[fetch]").first().waitFor();
  await endSessions(page, dashboard);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Your session has ended").waitFor();
  await dialog.getByLabel("Sign-in link").fill(await createSecret(dashboard));
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  await client.call("cancelJob", { params: { id } });
  // Its log is complete.
  await page.getByRole("button", { name: "Following" }).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("alert").count(), 0);
  await page.context().close();
}

async function readLog(t: TestContext, dashboard: Dashboard, host: string): Promise<void> {
  const id = await startSilent(dashboard, host);
  t.after(() => dashboard.client.call("cancelJob", { params: { id } }));
  // The sessions of the other parts were ended.
  const page = await openSignedIn(dashboard);
  await page.route(`**/v1/jobs/${id}/logs*`, async (route) => {
    const after = Number(new URL(route.request().url()).searchParams.get("after"));
    const count = after === 0 ? 200 : 1;
    const body = Array.from({ length: count }, (_, index) => writeLine(after + index + 1)).join("");
    await route.fulfill({ contentType: "text/event-stream", body });
  });
  await page.goto(`${dashboard.origin}/jobs/${id}`);
  await page.getByRole("button", { name: "Following" }).waitFor();
  const log = page.getByRole("log");
  const readTop = () => log.evaluate((element) => element.scrollTop);
  await until("the log follows", async () => (await readTop()) > 3000);
  await log.press("Home");
  await page.getByRole("button", { name: "Follow", exact: true }).waitFor();
  await until("the reader is at the first line", async () => (await readTop()) === 0);
  const count = async () => Number((await page.getByText(/^\d+ lines$/).innerText()).split(" ")[0]);
  const before = await count();
  await until("there are more lines", async () => (await count()) > before + 2);
  assert.equal(await readTop(), 0);
}

/** Browsers have neither locks nor a clipboard there, and give fewer headers. */
async function openPlain(t: TestContext, dashboard: Dashboard): Promise<void> {
  const { client, origin, openBrowser } = dashboard;
  const plain = origin.replace("localhost", plainHost);
  const page = await openBrowser();
  await page.goto(`${plain}/sign-in#${await createSecret(dashboard)}`);
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  assert.equal(await page.evaluate("isSecureContext"), false);
  const model = { source: "https://models.invalid/m.onnx", name: "plain" };
  await client.call("startCompression", { body: { model, target: "cpu" } });
  await page.getByRole("button", { name: /^\d+ new$/ }).click();
  await page.getByRole("link", { name: "plain" }).waitFor();
  await page.getByRole("link", { name: "Tokens" }).click();
  await page.getByRole("button", { name: "New token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("plain");
  await dialog.getByRole("button", { name: "Create token" }).click();
  await dialog.getByRole("button", { name: "Copy" }).first().click();
  await dialog.getByText("Copied", { exact: true }).waitFor();
  await page.goto(`${plain}/new`);
  await page.locator("input[type=file]").setInputFiles(await writeProduct(t));
  await page.getByText("Uploaded").waitFor();
  await page.getByRole("button", { name: "Start job" }).click();
  await page.waitForURL(/\/jobs\/job-/);
}

function writeLine(seq: number): string {
  const line = { seq, at: new Date(0).toISOString(), stream: "stdout", text: `line ${seq}` };
  return `event: log\nid: ${seq}\ndata: ${JSON.stringify(line)}\n\n`;
}

function createSecret({ directory }: Dashboard): Promise<string> {
  const place = recordsPlace({ MOS_DATA_DIR: directory, MOS_DATABASE_URL: undefined });
  return withRecords(place, (records, now) => createSignInLink(records, "test", now));
}

async function openSignedIn(dashboard: Dashboard): Promise<Page> {
  const page = await dashboard.openBrowser();
  await page.goto(`${dashboard.origin}/sign-in#${await createSecret(dashboard)}`);
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  return page;
}
