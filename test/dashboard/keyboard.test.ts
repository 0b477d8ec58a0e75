import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import type { Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import {
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";
import { writeBranches } from "./write-product.ts";

const skip = chromiumMissing;
/** No page has more stops before what is looked for. */
const mostTabs = 80;

/** The name of the control that has the focus, as a screen reader says it. */
async function readName(page: Page): Promise<string> {
  const focused = page.locator(":focus");
  // Behind the last control, the browser's own have the focus.
  if ((await focused.count()) === 0) return "";
  const snapshot = await focused.ariaSnapshot();
  return /^- \S+ "(?<name>[^"]*)"/.exec(snapshot)?.groups?.["name"] ?? "";
}

/** Goes on by Tab until a control with a name has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let stop = 0; stop < mostTabs; stop++) {
    await page.keyboard.press("Tab");
    if (name.test(await readName(page))) return;
  }
  assert.fail(`no control with the name ${name} is reached by Tab`);
}

async function use(page: Page, name: RegExp): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press("Enter");
}

/** Opens what the palette finds first. */
async function openByPalette(page: Page, text: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").waitFor();
  await page.keyboard.type(text);
  await page.getByRole("dialog").getByRole("option").first().filter({ hasText: text }).waitFor();
  await page.keyboard.press("Enter");
}

async function createToken(page: Page): Promise<string> {
  await openByPalette(page, "Tokens");
  await page.getByRole("button", { name: "New token" }).waitFor();
  await use(page, /^New token/);
  await page.getByRole("dialog").waitFor();
  await page.keyboard.type("by keys");
  assert.equal(await page.getByLabel("Name").inputValue(), "by keys");
  await use(page, /^Create token/);
  const token = await page.getByRole("region", { name: "Access token" }).innerText();
  await use(page, /I have copied it/);
  return token;
}

async function startJob(page: Page, file: string): Promise<void> {
  // Chromium reports choosers only from a while after that.
  const chooser = page.waitForEvent("filechooser");
  await openByPalette(page, "New job");
  await page.getByRole("heading", { name: "New job" }).waitFor();
  await tabTo(page, /Drop an ONNX file here/);
  await page.keyboard.press("Space");
  await (await chooser).setFiles(file);
  await page.getByText("Uploaded").waitFor();
  await use(page, /^Start job/);
  await page.locator("h1 .status").getByText("Completed").waitFor();
}

/** Reads a node, enters its subgraph and comes back. */
async function walkGraph(page: Page): Promise<void> {
  const details = page.getByRole("region", { name: "Selected node" });
  await use(page, /^MatMul/);
  // The type of what leads from node to node stands in no file: the runtime inferred it.
  await details.getByText("float32[1,64]").first().waitFor();
  await details.getByText("constant, float32[64,64]").waitFor();
  await page.getByLabel("Find nodes").focus();
  await page.keyboard.type("If");
  await page.keyboard.press("Enter");
  await use(page, /^Open then_branch · 1 node/);
  const trail = page.getByRole("navigation", { name: "Graphs around this one" });
  await trail.getByText("If, then_branch").waitFor();
  await page.getByText("1 node without constants").waitFor();
  await tabTo(page, /^Graph: arrow keys/);
  await page.keyboard.press("Backspace");
  await details.getByRole("heading", { name: "If" }).waitFor();
  assert.equal(await trail.count(), 0);
  assert.deepEqual(await findBarriers(page), []);
}

async function cancelAndRetry(page: Page, { client }: Dashboard, source: string): Promise<void> {
  const body = { name: "silent", model: { source }, target: "cpu" };
  const { id } = await client.call("startCompression", { body });
  await openByPalette(page, id);
  await page.getByRole("button", { name: "Cancel job" }).waitFor();
  await use(page, /^Cancel job/);
  await page.locator("h1 .status").getByText("Cancelled").waitFor();
  await use(page, /^Run again/);
  await page.waitForURL((url) => !url.href.endsWith(id));
  await page.getByRole("button", { name: "Cancel job" }).waitFor();
  await use(page, /^Cancel job/);
  await page.locator("h1 .status").getByText("Cancelled").waitFor();
}

test("tokens, jobs and graphs need no pointer", { skip }, async (t) => {
  const host = await listenLocally(t, createServer());
  const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true" };
  const dashboard = await openDashboard(t, { environment });
  const page = await signInByLink(dashboard);
  // By then the page listens to keys.
  await page.getByText("No jobs yet").waitFor();
  const token = await createToken(page);
  const ask = () =>
    fetch(`${dashboard.baseUrl}/jobs`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await ask()).status, 200);
  await startJob(page, await writeBranches(t));
  await tabTo(page, /^Search the log/);
  await page.keyboard.type("[optimize]");
  await page
    .getByRole("status")
    .getByText(/^1 of \d/)
    .waitFor();
  await use(page, /^Open the graph/);
  await page.getByRole("application").waitFor();
  await walkGraph(page);
  await cancelAndRetry(page, dashboard, `${host}/silent.onnx`);
  await openByPalette(page, "Tokens");
  await page.getByRole("button", { name: "Revoke by keys" }).waitFor();
  await use(page, /^Revoke by keys/);
  await use(page, /^Revoke token/);
  await page.getByText(/^Revoked/).waitFor();
  assert.equal((await ask()).status, 401);
  assertNoComplaints(dashboard);
});
