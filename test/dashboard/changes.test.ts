import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import {
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";

const skip = chromiumMissing;
const size = 128;

/** Two products; of the later commit one is trained on, and a node follows. */
async function uploadModel(t: TestContext, { client }: Dashboard, isLater: boolean) {
  const folder = await mkdtemp(join(tmpdir(), "changes-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  const weight = (seed: number) => (i: number) => Math.sin(i * 12.9898 + seed);
  const trained = (i: number) => weight(1)(i) + (isLater ? 0.05 * weight(3)(i * 3) : 0);
  await writeTinyModel(file, {
    input: [tensorInfo("x", [1, size])],
    output: [tensorInfo("y", [1, size])],
    initializer: [
      floatInitializer("first.weight", [size, size], trained),
      floatInitializer("second.weight", [size, size], weight(2)),
    ],
    node: [
      { ...node("MatMul", ["x", "first.weight"], ["a"]), name: "first" },
      { ...node("Relu", ["a"], ["b"]), name: "act" },
      { ...node("MatMul", ["b", "second.weight"], [isLater ? "c" : "y"]), name: "second" },
      ...(isLater ? [{ ...node("Tanh", ["c"], ["y"]), name: "squash" }] : []),
    ],
  });
  return (await client.uploadModel(file)).source;
}

async function runCommit(t: TestContext, dashboard: Dashboard, isLater: boolean): Promise<string> {
  const { jobs } = await dashboard.client.call("submitBatch", {
    body: {
      suite: "models",
      models: [{ name: "net", source: await uploadModel(t, dashboard, isLater) }],
      targets: ["cpu"],
      recipe: { scheme: "int4-weight", minElements: 1024, evaluation: { level: "none" } },
      revision: {
        sha: (isLater ? "b" : "a").repeat(40),
        branch: "main",
        base: { branch: "main" },
        recordBaseline: true,
      },
    },
  });
  const id = jobs[0]?.id ?? "";
  const job = await dashboard.client.call("getJob", {
    params: { id },
    headers: { prefer: "wait=60" },
  });
  assert.equal(job.status, "Completed", job.error?.message);
  return id;
}

test("the page of changes says what a commit and the compression changed", { skip }, async (t) => {
  const dashboard = await openDashboard(t);
  const first = await runCommit(t, dashboard, false);
  const later = await runCommit(t, dashboard, true);
  const page = await signInByLink(dashboard);
  await t.test("the job's page leads to it", async () => {
    await page.goto(`${dashboard.origin}/jobs/${later}`);
    await page.getByRole("link", { name: "What changed in the model" }).click();
    await page.getByRole("heading", { level: 1, name: "What changed in net" }).waitFor();
  });
  await t.test("against the baseline", () => checkModelChanges(page));
  await t.test("by the compression", () => checkResultChanges(page));
  await t.test("a name leads to the graph", () => checkGraphLink(page));
  await t.test("another name is shown while the graph of one is loaded", () =>
    openWhileLoading(page, `${dashboard.origin}/jobs/${later}`),
  );
  await t.test("nobody is kept out", async () => assert.deepEqual(await findBarriers(page), []));
  await t.test("without a baseline, the compression's are shown", async () => {
    await page.goto(`${dashboard.origin}/jobs/${first}/changes`);
    await page.getByText(/^Against the original: /).waitFor();
    await page.getByRole("link", { name: "Since the baseline" }).click();
    await page.getByRole("heading", { name: "There is no baseline" }).waitFor();
  });
  await t.test("a job that does not exist is said to be none", async () => {
    await page.goto(`${dashboard.origin}/jobs/job-${"0".repeat(26)}/changes`);
    await page.getByRole("heading", { name: "No such job" }).waitFor();
  });
  assertNoComplaints(dashboard);
});

async function checkModelChanges(page: Page): Promise<void> {
  await page
    .getByText(/^Against the model of main: 1 node added, 1 weight changed by up to \d\.\d %\.$/)
    .waitFor();
  assert.equal(
    await page.getByRole("link", { name: "Since aaaaaaa on main" }).getAttribute("aria-current"),
    "page",
  );
  const nodes = page.getByRole("table", { name: "Changed nodes" });
  await nodes.getByText("squash", { exact: true }).waitFor();
  await nodes.getByText("from second").waitFor();
  const weights = page.getByRole("table", { name: "Changed weights" });
  await weights.getByRole("row", { name: /changed first\.weight float32\[128,128\] \d/ }).waitFor();
  const drawn = await page
    .getByRole("img", { name: /^Changed nodes/ })
    .locator("g")
    .count();
  assert.equal(drawn, 2);
}

async function checkResultChanges(page: Page): Promise<void> {
  await page.getByRole("link", { name: "By the compression" }).click();
  await page
    .getByText(/^Against the original: .*2 weights changed by up to \d+\.\d %\.$/)
    .waitFor();
  const weights = page.getByRole("table", { name: "Changed weights" });
  await weights.getByRole("row", { name: /second\.weight float32\[128,128\] → int4/ }).waitFor();
  await page.getByLabel("Find changed weights").fill("first");
  await weights.getByText("second.weight").waitFor({ state: "detached" });
}

async function checkGraphLink(page: Page): Promise<void> {
  await page.getByRole("link", { name: "first.weight" }).click();
  const node = page.getByRole("region", { name: "Selected node" });
  await node.getByText("first", { exact: true }).waitFor();
  await showResult(page);
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "What changed in net" }).waitFor();
}

/** Each name once the other's graph is asked for; the address of the last one was cut. */
async function openWhileLoading(page: Page, job: string): Promise<void> {
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
  const files = "**/artifacts/graph.json";
  await page.route(files, async (route) => {
    ask();
    await mayAnswer;
    await route.fallback().catch(() => undefined);
  });
  await page.goto(`${job}#graph=first.weight`);
  await isAsked;
  await page.evaluate('location.hash = "#graph=second.weight"');
  const node = page.getByRole("region", { name: "Selected node" });
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))");
  answer();
  await node.getByText("second", { exact: true }).waitFor();
  await page.unroute(files);
  await page.goto(`${job}/changes`);
  await page.goto(`${job}#graph=first%E0%A4`);
  await page.getByRole("button", { name: "Close the graph" }).waitFor();
  await page.goto(`${job}/changes`);
  await page.getByRole("heading", { level: 1, name: "What changed in net" }).waitFor();
}

/** From a node of the original's graph to the result's and back, each time at the same place. */
async function showResult(page: Page): Promise<void> {
  const node = page.getByRole("region", { name: "Selected node" });
  const pressed = (name: string) =>
    page.getByRole("button", { name, exact: true, pressed: true }).waitFor();
  await pressed("Original");
  await node.getByText("changed, other").waitFor();
  await node.getByRole("button", { name: "Show it in the result" }).click();
  await pressed("Result");
  await node.getByText("first", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Difference" }).click();
  await page.getByRole("list").getByText("+ added").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  // What was added is not in the original: what takes it is shown there.
  await page.getByLabel("Find nodes").fill("first.weight");
  await page.getByRole("group", { name: "Matching nodes" }).getByRole("button").first().click();
  await node.getByText("added", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Original", exact: true }).click();
  await pressed("Original");
  await node.getByText("first", { exact: true }).waitFor();
}
