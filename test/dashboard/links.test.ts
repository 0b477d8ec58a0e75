import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { prepareRunner } from "../action/support/runner.ts";
import { workflowEvents } from "../action/support/workflow-event.ts";
import { writeWorkspaceModel } from "../action/workspace-models.ts";
import {
  gitHubAppFileContent,
  startGitHubWithApp,
  untilCheckRun,
} from "../github-app/reported-batch.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { findFreePort } from "../support/find-free-port.ts";
import { until } from "../support/until.ts";
import { startReceiver } from "../webhooks/receiver.ts";
import { type Dashboard, openDashboard, signInByLink } from "./open-dashboard.ts";

const skip = chromiumMissing;
const pullRequest = 7;

/** The service with its page, reached by people at its own address, with a GitHub App. */
async function openWithApp(t: TestContext) {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const folder = await mkdtemp(path.join(tmpdir(), "links-"));
  t.after(() => rm(folder, { recursive: true }));
  const appFile = path.join(folder, "github-app.yaml");
  await writeFile(appFile, gitHubAppFileContent(credentials));
  const port = await findFreePort();
  const origin = `http://localhost:${port}`;
  const environment = {
    MOS_PORT: String(port),
    MOS_PUBLIC_URL: origin,
    MOS_GITHUB_APP_FILE: appFile,
    MOS_ALLOW_PRIVATE_ADDRESSES: "true",
  };
  return { gitHub, dashboard: await openDashboard(t, { environment }) };
}

/** Runs a step twice, once left to the service, and gives all texts in which people read of it. */
async function reportEverywhere(t: TestContext) {
  const { gitHub, dashboard } = await openWithApp(t);
  const receiver = await startReceiver(t);
  const body = { url: `${receiver.url}/events` };
  await dashboard.client.call("createWebhook", { body });
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  await writeWorkspaceModel(runner.workspace, "a.onnx");
  await writeFile(path.join(runner.workspace, "broken.onnx"), "no model");
  const inputs = {
    "service-url": dashboard.origin,
    token: dashboard.token,
    models: "*.onnx",
    targets: "cpu",
    recipe: "evaluation: { latencyBudgetSeconds: 0 }",
    gates: "maxSizeRatio: 0.01",
    comment: "true",
    "github-token": gitHub.token,
  };
  const event = workflowEvents.pullRequest;
  const followed = await (await runner.start(inputs, { event })).ended;
  assert.equal(followed.outputs["conclusion"], "failure", followed.log);
  const left = { ...inputs, wait: "false", "check-name": "Left to the service" };
  const unattended = await (await runner.start(left, { event })).ended;
  await untilCheckRun(gitHub, "Left to the service", "failure");
  const texts = {
    "check runs": gitHub.checkRuns().flatMap(({ details_url: url, output }) => {
      return [url ?? "", output.summary ?? "", output.text ?? ""];
    }),
    comments: gitHub.comments(pullRequest).map((comment) => comment.body ?? ""),
    summaries: [followed.summary, unattended.summary],
    outputs: [followed.outputs["batch-url"] ?? "", unattended.outputs["batch-url"] ?? ""],
    reports: [await readFile(followed.outputs["report-json"] ?? "", "utf8")],
    webhooks: receiver.received.map(({ event: { data } }) => data.links.page ?? ""),
  };
  return { dashboard, texts };
}

/** Addresses at the service in a text, in Markdown or in JSON. */
function findLinks(text: string, origin: string): string[] {
  return (text.match(/https?:\/\/[^\s)"<>|]+/g) ?? []).filter((url) => url.startsWith(origin));
}

/** Follows a link as somebody does who reads a page of another site, such as GitHub's. */
async function followLink(page: Page, url: string): Promise<void> {
  const elsewhere = "http://github.test/acme/models/pull/7";
  await page.route(elsewhere, (route) =>
    route.fulfill({ contentType: "text/html", body: `<a href="${url}">details</a>` }),
  );
  await page.goto(elsewhere);
  await page.getByRole("link", { name: "details" }).click();
  await page.waitForURL(url);
}

/** Asserts that the page shows the job or batch which its address names. */
async function assertShown(page: Page, { client }: Dashboard, url: string): Promise<void> {
  const { pathname, hash } = new URL(url);
  const [, kind, id = "", part, ...more] = pathname.split("/");
  assert.deepEqual(more, [], url);
  if (part !== undefined) {
    assert.equal(part, "changes", url);
    const { model, status } = await client.call("getJob", { params: { id } });
    await page.getByRole("heading", { level: 1, name: `What changed in ${model.name}` }).waitFor();
    const shown =
      status === "Completed" ? /^Against the original: / : "There is no result to compare";
    await page.getByText(shown).waitFor();
    return;
  }
  const name =
    kind === "jobs"
      ? (await client.call("getJob", { params: { id } })).model.name
      : (await client.call("getBatch", { params: { id } })).name;
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.locator("dl.facts").getByText(id, { exact: true }).waitFor();
  if (hash === "") return;
  assert.equal(hash, "#log", url);
  const log = page.locator(hash);
  await log.getByText(/lines$/).waitFor();
  await until("the log is in view", async () => {
    const [box, view] = [await log.boundingBox(), page.viewportSize()];
    return box !== null && view !== null && box.y < view.height && box.y + box.height > 0;
  });
}

test("every link of a report leads to the page of what it names", { skip }, async (t) => {
  const { dashboard, texts } = await reportEverywhere(t);
  const links = new Set<string>();
  for (const [place, ofPlace] of Object.entries(texts)) {
    const found = ofPlace.flatMap((text) => findLinks(text, dashboard.origin));
    assert.notEqual(found.length, 0, `${place} have links`);
    for (const link of found) links.add(link);
  }
  const page = await signInByLink(dashboard);
  for (const link of links) {
    await t.test(link.replace(dashboard.origin, ""), async () => {
      await followLink(page, link);
      await assertShown(page, dashboard, link);
    });
  }
  // Two batches of two jobs, the jobs' logs, and what changed: in the JSON also of one without a result.
  assert.equal(links.size, 2 + 4 + 4 + 3);
});

test("who is not signed in is asked to, and then sees what the link names", { skip }, async (t) => {
  const dashboard = await openDashboard(t);
  const { client, origin, signInLink } = dashboard;
  const body = { model: { source: "https://models.invalid/a.onnx" }, target: "cpu" };
  const { id } = await client.call("startCompression", { body });
  const page = await dashboard.openBrowser();
  const link = `${origin}/jobs/${id}`;
  await followLink(page, link);
  await page.getByRole("heading", { name: /sign in/i }).waitFor();
  const other = await page.context().newPage();
  await other.goto(signInLink);
  await other.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  await assertShown(page, dashboard, link);
});
