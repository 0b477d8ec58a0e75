import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { Dialog, Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import {
  assertFitsAllLooks,
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";
import { until } from "../support/until.ts";
import { writeProduct } from "./write-product.ts";

const skip = chromiumMissing;

test("the form of a job", { skip }, async (t) => {
  const dashboard = await openDashboard(t);
  const page = await signInByLink(dashboard);
  await t.test("it is signed in at a page that has an address", async () => {
    assert.ok(page.url().endsWith("/jobs"));
    await page.locator('nav a[aria-current="page"]').getByText("Jobs").waitFor();
  });
  await t.test("an empty installation leads to a first job of a sample", () =>
    useSample(page, dashboard),
  );
  await t.test("leaving what was typed asks, by links, keys and buttons", () =>
    askBeforeLeaving(page, dashboard),
  );
  await t.test("a file that is no model is refused where it is dropped", () =>
    refuseText(t, page, dashboard),
  );
  await t.test("a number out of range says the range", () => checkRanges(page, dashboard));
  await t.test("a prediction leaves no job behind", () => predict(t, page, dashboard));
  await t.test("running again with changes keeps every gate", () => keepGates(t, page, dashboard));
  await t.test("a scheme takes only the fields that it has a place for", () =>
    changeScheme(t, page, dashboard),
  );
  await t.test("what failed is started again without what was started", () =>
    startBatchesAgain(t, page, dashboard),
  );
  assertNoComplaints(dashboard);
});

async function useSample(page: Page, { client }: Dashboard): Promise<void> {
  await page.getByText("No jobs yet").waitFor();
  assert.equal(await page.locator(".first-steps li").count(), 3);
  await page.getByRole("link", { name: "Try the sample model" }).click();
  await page.getByText("Uploaded, 438 kB").waitFor();
  await page.getByRole("button", { name: "Predict size" }).click();
  await page
    .getByText(
      /% of 438 kB; the job takes about \d+ MB of memory and [\d.]+ kB of disk, time not known yet$/,
    )
    .waitFor();
  assert.deepEqual((await client.call("listJobSummaries", {})).jobs, []);
}

async function askBeforeLeaving(page: Page, { origin }: Dashboard): Promise<void> {
  const asked: string[] = [];
  let answer = false;
  const decide = async (dialog: Dialog) => {
    asked.push(dialog.type());
    await (answer ? dialog.accept() : dialog.dismiss());
  };
  page.on("dialog", (dialog) => void decide(dialog));
  await page.goto(`${origin}/jobs`);
  await page.getByRole("link", { name: "New job" }).first().click();
  await openFold(page, "More gates none set");
  await page.getByLabel("Minimum cosine").fill("0.5");
  await page.getByRole("link", { name: "Batches" }).click();
  await page.goBack();
  // A key that is pressed while the question is open is lost.
  await until("going back asked", () => asked.length === 2);
  await page.waitForURL(`${origin}/new`);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("Audit");
  await page.getByRole("option", { name: /^Audit/ }).click();
  assert.equal(await page.getByLabel("Minimum cosine").inputValue(), "0.5");
  assert.equal(new URL(page.url()).pathname, "/new");
  assert.deepEqual(asked, ["confirm", "confirm", "confirm"]);
  answer = true;
  await page.getByRole("link", { name: "Batches" }).click();
  await page.getByRole("heading", { name: "Batches", level: 1 }).waitFor();
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByText("No jobs yet").waitFor();
  assert.equal(asked.length, 4);
}

async function refuseText(t: TestContext, page: Page, { origin }: Dashboard): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "text-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "README.md");
  await writeFile(file, "# A text\n".repeat(2000));
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(`${origin}/new`);
  await page.locator("input[type=file]").setInputFiles(file);
  await page.getByText('"README.md" is not an ONNX model: it is a text file').waitFor();
  assert.deepEqual(await findBarriers(page), []);
  assert.equal(asked.filter((path) => path.startsWith("/v1/models/")).length, 0);
  await page.getByRole("button", { name: "Choose another file" }).click();
}

async function openFold(page: Page, title: string): Promise<void> {
  await page.locator("summary", { hasText: title }).click();
}

/** What is wrong is seen, also where its field was folded away. */
async function checkRanges(page: Page, { origin }: Dashboard): Promise<void> {
  const source = `https://models.invalid/${"folder/".repeat(20)}model.onnx`;
  const versions = [{ name: "model", source, jobs: 1, newestJobId: `job-${"0".repeat(26)}` }];
  await page.route("**/v1/model-versions", (route) => route.fulfill({ json: { versions } }));
  await page.goto(`${origin}/new`);
  await page.getByLabel("or a model that is known here").waitFor();
  const address = page.getByLabel("or its address");
  await page.getByRole("button", { name: "Start job" }).click();
  await page.getByText("Drop a file, or enter an address").waitFor();
  await address.fill("ftp://models.invalid/m.onnx");
  await page.getByRole("button", { name: "Start job" }).click();
  await page.locator("form").getByText("must be https://…").waitFor();
  await address.fill("https://models.invalid/m.onnx");
  await openFold(page, "More gates none set");
  await page.getByLabel("Minimum cosine").fill("7");
  await openFold(page, "More gates Cosine similarity 7");
  await page.getByLabel("Minimum cosine").waitFor({ state: "hidden" });
  await page.getByLabel("Minimum SQNR").fill("abc");
  await page.getByLabel("Maximum size").fill("0");
  await page.getByRole("button", { name: "Start job" }).click();
  await page.getByText("Enter a number from -1 to 1").waitFor();
  await page.getByText("Enter a number", { exact: true }).waitFor();
  await page.getByText("Enter a number above 0").waitFor();
  const fields = ["Minimum cosine", "Minimum SQNR", "Minimum top-1 agreement"];
  const [wrong, alsoWrong, right] = await Promise.all(
    fields.map((label) =>
      page.getByLabel(label).evaluate((input) => {
        const style = input.ownerDocument.defaultView?.getComputedStyle(input);
        return { border: style?.borderTopColor };
      }),
    ),
  );
  assert.notEqual(wrong?.border, right?.border);
  assert.equal(wrong?.border, alsoWrong?.border);
  const size = await page.getByLabel("Maximum size").boundingBox();
  const sqnr = await page.getByLabel("Minimum SQNR").boundingBox();
  assert.equal(size?.y, sqnr?.y, "fields of a row stay in line");
  await openFold(page, "More gates");
  await page.getByRole("button", { name: "Start job" }).click();
  await page.getByText("Enter a number from -1 to 1").waitFor();
  await openFold(page, "Kind and other recipe fields compress, the target's recipe");
  await page.getByLabel("Other recipe fields").fill('{ "granularity": "tensor" }');
  await page.getByText("compress, granularity").waitFor();
  await assertFitsAllLooks(page, page.url());
  await page.unroute("**/v1/model-versions");
}

/** Of a model that `writeProduct` writes. */
const prediction =
  /% of 16\.\d kB; the job takes about \d+ MB of memory and [\d.]+ kB of disk, time not known yet$/;

async function predict(t: TestContext, page: Page, { client, origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/new`);
  await page.locator("input[type=file]").setInputFiles(await writeProduct(t));
  await page.getByText("Uploaded").waitFor();
  await page.getByRole("button", { name: "Predict size" }).click();
  await page.getByText(prediction).waitFor();
  const { source } = await client.uploadModel(await writeProduct(t));
  await page.goto(`${origin}/new-batch?model=${encodeURIComponent(source)}&name=product`);
  await page.getByRole("checkbox", { name: "cpu", exact: false }).first().check();
  await page.getByRole("button", { name: "Predict sizes" }).click();
  await page.getByText("product · cpu · target").waitFor();
  assert.equal(await page.getByText(prediction).count(), 1);
  assert.deepEqual(await findBarriers(page), []);
  const { jobs } = await client.call("listJobSummaries", {});
  assert.deepEqual(jobs, []);
  const { entries } = await client.call("listAudit", {});
  const actions = entries.map(({ action }) => action);
  assert.ok(actions.includes("startCompression") && !actions.includes("startQuantization"));
}

async function keepGates(t: TestContext, page: Page, { client, origin }: Dashboard): Promise<void> {
  const { source } = await client.uploadModel(await writeProduct(t));
  const gates = {
    maxSizeRatio: 0.5,
    minSqnrDb: 10,
    minCosine: 0.5,
    minTop1: 0.1,
    maxLatencyRatio: 9,
    maxSizeRegression: 0.1,
    maxSqnrDropDb: 3,
    maxLatencyRegression: 0.5,
    warnGates: ["maxSizeRegression" as const, "maxLatencyRatio" as const],
  };
  const { id } = await client.call("startCompression", {
    body: {
      model: { source },
      target: "cpu",
      gates,
      labels: { team: "vision" },
      deadlineSeconds: 500,
      recipe: { evaluation: { level: "none" } },
    },
  });
  const before = await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  await page.goto(`${origin}/new?from=${id}`);
  await page
    .getByText(/^More gates Cosine similarity 0.5, .*, Growth of the latency 0.5$/)
    .waitFor();
  const { promise: areClicked, resolve: answer } = Promise.withResolvers<void>();
  await page.route("**/v1/compress", (route) => areClicked.then(() => route.continue()));
  await page.getByRole("button", { name: "Start job" }).dblclick();
  answer();
  await page.waitForURL((url) => /\/jobs\/job-/.test(url.pathname) && !url.href.endsWith(id));
  const started = page.url().split("/").at(-1) ?? "";
  const after = await client.call("getJob", { params: { id: started } });
  assert.deepEqual(after.gateLimits, gates);
  assert.deepEqual(after.recipe, before.recipe);
  assert.deepEqual(after.labels, before.labels);
  assert.equal(after.deadlineSeconds, 500);
  await page.unroute("**/v1/compress");
  const { jobs } = await client.call("listJobSummaries", {});
  assert.equal(jobs.length, 2, "a double click starts one job");
}

async function changeScheme(
  t: TestContext,
  page: Page,
  { client, origin }: Dashboard,
): Promise<void> {
  const { source } = await client.uploadModel(await writeProduct(t));
  const { id } = await client.call("startCompression", {
    body: {
      model: { source },
      target: "cpu",
      recipe: {
        scheme: "int4-weight",
        calibration: { generated: true },
        evaluation: { level: "none" },
      },
    },
  });
  await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  await page.goto(`${origin}/jobs`);
  const row = page.getByRole("row").filter({ has: page.locator(`a[href="/jobs/${id}"]`) });
  await row.getByText(/^\d warnings?$/).waitFor();
  await page.goto(`${origin}/new?from=${id}`);
  const fields = page.getByLabel("Other recipe fields");
  const former = await fields.inputValue();
  await page.getByLabel("Scheme").selectOption("fp16");
  await page.getByText("With fp16, calibration is left out.", { exact: true }).waitFor();
  assert.ok(!(await fields.inputValue()).includes("calibration"));
  await page.getByLabel("Scheme").selectOption("int8-dynamic");
  await page.getByText("With int8-dynamic, the granularity is channel.", { exact: true }).waitFor();
  assert.ok((await fields.inputValue()).includes("calibration"));
  assert.deepEqual(await findBarriers(page), []);
  await page.getByLabel("Scheme").selectOption("int4-weight");
  assert.deepEqual(JSON.parse(await fields.inputValue()), JSON.parse(former));
  await page.getByLabel("Scheme").selectOption("int8-dynamic");
  await page.getByRole("button", { name: "Start job" }).click();
  await page.locator("dl.facts").getByText("int8-dynamic, per channel").waitFor();
}

async function startBatchesAgain(
  t: TestContext,
  page: Page,
  { client, origin }: Dashboard,
): Promise<void> {
  const { source } = await client.uploadModel(await writeProduct(t));
  let sent = 0;
  await page.route("**/v1/batches", (route) => {
    sent += 1;
    return sent === 2 ? route.fulfill({ status: 500 }) : route.continue();
  });
  await page.goto(`${origin}/new-batch?model=${encodeURIComponent(source)}&name=product`);
  await page.getByRole("checkbox", { name: "cpu", exact: false }).first().check();
  await page.getByRole("checkbox", { name: /^fp16/ }).check();
  await page.getByRole("button", { name: "Start 2 jobs" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Start 2 jobs" }).click();
  await page.waitForURL(/\/compare\?batch=/);
  const { batches } = await client.call("listBatches", {});
  assert.equal(batches.length, 2);
}
