import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import type { JobRequest } from "../../src/contract/jobs/job.ts";
import { suiteHistory } from "../../src/contract/batches/suite.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import {
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";
import { writeProduct } from "./write-product.ts";

const skip = chromiumMissing;
const suite = "nightly";
const [before, now, other] = ["a".repeat(40), "b".repeat(40), "d".repeat(40)];
const evaluation = { level: "none" as const };

type Scheme = NonNullable<JobRequest["recipe"]>["scheme"];

/** Runs the batch of one commit to its end. @returns its id */
async function runCommit(
  { client }: Dashboard,
  {
    sha,
    scheme,
    source,
    branch = "main",
  }: { [K in "sha" | "source"]: string } & {
    readonly scheme: Scheme;
    readonly branch?: string;
  },
): Promise<string> {
  const { id, jobs } = await client.call("submitBatch", {
    body: {
      suite,
      models: [{ name: "product", source }],
      targets: ["cpu"],
      recipe: { scheme, evaluation },
      gates: { maxSizeRegression: 0.05, warnGates: ["maxSizeRegression"] },
      revision: { sha, branch, base: { branch: "main" }, recordBaseline: true },
    },
  });
  for (const job of jobs) {
    const params = { id: job.id };
    await client.call("getJob", { params, headers: { prefer: "wait=60" } });
  }
  return id;
}

/** A batch whose results became larger than those of the commit before. */
async function openSecondCommit(t: TestContext) {
  const dashboard = await openDashboard(t);
  const page = await signInByLink(dashboard);
  const { source } = await dashboard.client.uploadModel(await writeProduct(t));
  await runCommit(dashboard, { sha: before, scheme: "int8-weight", source });
  const id = await runCommit(dashboard, { sha: now, scheme: "fp16", source });
  return { dashboard, page, id };
}

test("a batch, its suite, a job's graph and the palette", { skip }, async (t) => {
  const { dashboard, page, id } = await openSecondCommit(t);
  await t.test("a batch is compared with its baseline, and a job with its own", async () => {
    await page.goto(`${dashboard.origin}/batches/${id}`);
    await page.getByText("aaaaaaa on main").waitFor();
    const cell = page.getByRole("link", { name: /^product for cpu: A gate warns\./ });
    await cell.getByText(/^is [\d.]+ % larger than that of main; 5 % are allowed/).waitFor();
    await page.getByRole("columnheader", { name: "cpu fp16, per channel" }).waitFor();
    await page.getByRole("list", { name: "Signs" }).getByText("A gate warns").waitFor();
    await page.getByText("1 warned").waitFor();
    await checkWhole(page);
    assert.deepEqual(await findBarriers(page), []);
    await page.getByRole("link", { name: "Size", exact: true }).click();
    await page.getByRole("link", { name: /Worse than the baseline/ }).waitFor();
    assert.ok(page.url().endsWith("?show=size"));
    await page.getByRole("link", { name: "Compare product for cpu" }).click();
    await page.getByRole("heading", { name: "Compared with aaaaaaa on main" }).waitFor();
    await page.getByRole("row", { name: "scheme int8-weight fp16 differs" }).waitFor();
    await page.getByRole("row", { name: /^size .*worse/ }).waitFor();
    await page.getByText("misses growth ≤ 5 %").waitFor();
  });
  await t.test("a first run without a baseline is no warning", () =>
    openFirstCommit(page, dashboard),
  );
  await t.test("a batch of which nothing has ended says so", () => openWaiting(page, dashboard));
  await t.test("a suite has a line of each figure, and a row of each commit", async () => {
    await page.goto(`${dashboard.origin}/suites/${suite}`);
    await page.locator("canvas").first().waitFor();
    assert.equal(await page.getByRole("row", { name: /aaaaaaa|bbbbbbb/ }).count(), 2);
    await page.getByRole("row", { name: /^bbbbbbb .* now fp16, per channel/ }).waitFor();
    await page
      .locator(".u-over")
      .first()
      .hover({ position: { x: 4, y: 40 } });
    await page.getByText(/^aaaaaaa: cpu [\d.]+ %$/).waitFor();
    assert.deepEqual(await findBarriers(page), []);
  });
  await t.test("lines that are equal hide none of their targets", () =>
    showEqualLines(page, dashboard),
  );
  await t.test("a suite names other models that do not pass", () => showOthers(page, dashboard));
  await t.test("branches of a suite are apart", () => showBranch(t, page, dashboard));
  await t.test("a job is run again with changes", () => runWithChanges(page));
  await t.test("the graph of a job is drawn, with the list of its nodes", async () => {
    await page.getByRole("button", { name: "Open the graph" }).click();
    await page.getByRole("application").waitFor();
    await page.getByRole("button", { name: /^MatMul/ }).click();
    assert.deepEqual(await findBarriers(page), []);
    assert.ok(page.url().endsWith("#graph"));
  });
  await t.test("the palette finds a job, and ? shows the keys", () => useKeys(page));
  await t.test("a graph of 50,000 nodes is drawn", () => openLargeGraph(page));
  await t.test("each row has the columns of its table's head", () =>
    checkColumns(t, dashboard, page),
  );
  assertNoComplaints(dashboard);
});

/** What a gate found is to be read in a matrix and in the list below it, however wide they are. */
async function checkWhole(page: Page): Promise<void> {
  const texts = page.locator(".matrix td small, .list small");
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 800 });
    const cut = await texts.evaluateAll((all) =>
      all
        .filter((text) => text.scrollWidth > text.clientWidth && text.clientWidth > 0)
        .map((text) => text.textContent),
    );
    assert.deepEqual(cut, [], `cut at ${width} pixels`);
  }
}

/** As if each job had run for another target too, with the same result. */
async function showEqualLines(page: Page, { origin }: Dashboard): Promise<void> {
  await page.route("**/v1/suites/history?*", async (route) => {
    const answer = await route.fetch();
    const history = suiteHistory.parse(await answer.json());
    const others = history.jobs.map((job) => ({ ...job, target: "npu" }));
    await route.fulfill({
      response: answer,
      json: { ...history, jobs: [...history.jobs, ...others] },
    });
  });
  await page.goto(`${origin}/suites/${suite}`);
  await page.getByText("cpu and npu are one line").first().waitFor();
  await page
    .locator(".u-over")
    .first()
    .hover({ position: { x: 4, y: 40 } });
  await page.getByText(/^aaaaaaa: cpu and npu [\d.]+ %$/).waitFor();
  await page.unroute("**/v1/suites/history?*");
}

async function showOthers(page: Page, { origin }: Dashboard): Promise<void> {
  await page.route("**/v1/batches/*", async (route) => {
    const answer = await route.fetch();
    const batch = batchSchema.parse(await answer.json());
    const others = ["detector", "recognizer"].flatMap((model) =>
      batch.jobs.map((job) => ({ ...job, model, gatesFailed: true })),
    );
    await route.fulfill({ response: answer, json: { ...batch, jobs: [...batch.jobs, ...others] } });
  });
  await page.goto(`${origin}/suites/${suite}`);
  await page.getByText("In the newest batch, detector, recognizer do not pass.").waitFor();
  const other = page.getByRole("link", { name: "recognizer" });
  assert.match((await other.getAttribute("href")) ?? "", /\?model=recognizer$/);
  assert.deepEqual(await findBarriers(page), []);
  await page.unroute("**/v1/batches/*");
}

async function showBranch(t: TestContext, page: Page, dashboard: Dashboard): Promise<void> {
  const { source } = await dashboard.client.uploadModel(await writeProduct(t));
  await runCommit(dashboard, { sha: other, scheme: "fp16", source, branch: "wider" });
  await page.goto(`${dashboard.origin}/suites/${suite}`);
  const row = page.getByRole("row", { name: "ddddddd" });
  await page.getByRole("link", { name: "wider" }).click();
  await row.waitFor();
  assert.equal(await page.getByRole("row", { name: /aaaaaaa|bbbbbbb/ }).count(), 0);
  assert.deepEqual(await findBarriers(page), []);
  await page.getByRole("link", { name: "main", exact: true }).click();
  await row.waitFor({ state: "detached" });
}

async function openFirstCommit(page: Page, { client, origin }: Dashboard): Promise<void> {
  const { batches } = await client.call("listBatches", {});
  const first = batches.at(-1);
  await page.goto(`${origin}/batches/${first?.id}`);
  await page.getByRole("link", { name: /^product for cpu: Completed, not compared\./ }).waitFor();
  await page.getByText("Nothing needs your attention.").waitFor();
  await page.getByText("1 without a baseline").waitFor();
  assert.equal(await page.getByText("warned").count(), 0);
  await page.goto(`${origin}/jobs?batch=${first?.id}`);
  await page.getByRole("cell", { name: "no baseline yet" }).waitFor();
}

async function openWaiting(page: Page, { client, origin }: Dashboard): Promise<void> {
  const models = Array.from({ length: 3 }, (_, index) => ({
    source: `https://models.invalid/${index}.onnx`,
  }));
  const { id } = await client.call("submitBatch", {
    body: { models, targets: ["cpu", "cpu-int8"] },
  });
  // As if no worker had begun: the jobs fail soon.
  await page.route("**/v1/batches/*", async (route) => {
    const answer = await route.fetch();
    const batch = batchSchema.parse(await answer.json());
    const jobs = batch.jobs.map((job) => ({ ...job, status: "Pending" }));
    await route.fulfill({ response: answer, json: { ...batch, status: "Pending", jobs } });
  });
  await page.goto(`${origin}/batches/${id}`);
  await page.getByText("No job has finished yet.").waitFor();
  await page.getByText("not evaluated yet").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  await page.unroute("**/v1/batches/*");
  await client.call("cancelBatch", { params: { id } }).catch(() => undefined);
  await page.goto(`${origin}/batches`);
}

/** From the page of the suite. */
async function runWithChanges(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("link", { name: "product" }).first().click();
  await page.getByRole("link", { name: "Run with changes" }).click();
  await page.getByRole("heading", { name: "Run again with changes" }).waitFor();
  assert.match(await page.getByLabel("or its address").inputValue(), /^upload:sha256:/);
  await page.getByLabel("Scheme").selectOption("int8-weight");
  const fields = page.getByLabel("Other recipe fields");
  await page.locator("summary", { hasText: "Kind and other recipe fields" }).click();
  await fields.fill('{ "granularity": "none" }');
  await page.getByRole("button", { name: "Start job" }).click();
  await page.getByText(/^granularity is "none" and must be /).waitFor();
  await fields.fill('{ "granularity": "tensor", "evaluation": { "level": "none" } }');
  assert.deepEqual(await findBarriers(page), []);
  await page.getByRole("button", { name: "Start job" }).click();
  await page.waitForURL(/\/jobs\/job-/);
  await page.locator("h1 .status").getByText("Completed").waitFor();
  await page.locator("dl.facts").getByText("int8-weight, per tensor").waitFor();
}

async function useKeys(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  const input = page.getByRole("combobox", { name: "Find a page, a job or an action" });
  await input.fill("product completed fp16");
  const option = page.getByRole("option", { name: /^product/ }).first();
  await option.waitFor();
  assert.equal(await option.getAttribute("aria-selected"), "true");
  assert.deepEqual(await findBarriers(page), []);
  await page.keyboard.press("Enter");
  await page.locator("dl.facts").getByText("fp16, per").waitFor();
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard" });
  await help.getByText("Find a page, a job or an action").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
}

const largeCount = 50_000;
const withoutParts = { captured: [], attributes: [], weights: [], subgraphs: [] };
const largeGraph = {
  graph: {
    name: "",
    inputs: [0],
    outputs: [largeCount],
    values: Array.from({ length: largeCount + 1 }, (_, index) => ({
      name: `value-${index}`,
      type: "float32[1]",
    })),
    nodes: Array.from({ length: largeCount }, (_, index) => {
      const inputs = index % 7 === 3 ? [index, index - 2] : [index];
      return {
        name: `node-${index}`,
        opType: "Add",
        inputs,
        outputs: [index + 1],
        ...withoutParts,
      };
    }),
  },
  weights: [],
};

/** From the page of a job. */
async function openLargeGraph(page: Page): Promise<void> {
  await page.route("**/artifacts/graph.json", (route) => route.fulfill({ json: largeGraph }));
  await page.getByRole("button", { name: "Open the graph" }).click();
  await page.getByRole("status").getByText("50,002").waitFor();
  await page.getByLabel("Find nodes").fill("node-49999");
  await page.getByRole("button", { name: /node-49999/ }).click();
  await page.getByRole("application").press("+");
}

const members = [
  {
    member: "group:vision",
    issuer: "https://sso.example",
    person: null,
    role: "viewer",
    createdAt: new Date(0).toISOString(),
  },
];

/** Opens all pages with tables, with rows of every kind, as wide as a phone and wider. */
async function checkColumns(t: TestContext, dashboard: Dashboard, page: Page): Promise<void> {
  const { client, origin } = dashboard;
  const { source } = await client.uploadModel(await writeProduct(t));
  const equal = await runCommit(dashboard, { sha: "c".repeat(40), scheme: "fp16", source });
  const batch = await client.call("getBatch", { params: { id: equal } });
  const missing = { model: { source: "https://models.invalid/m.onnx" }, target: "cpu" };
  const { id: failed } = await client.call("startCompression", { body: missing });
  await client.call("getJob", { params: { id: failed }, headers: { prefer: "wait=60" } });
  await page.goto(`${origin}/jobs/${failed}`);
  await page.getByText(/^Cannot fetch "https:\/\/models.invalid/).waitFor();
  // Why it failed covers nothing of what may be done about it.
  await page.getByRole("link", { name: "Run with changes" }).click({ trial: true });
  await page.route("**/v1/projects/*/members", (route) => route.fulfill({ json: { members } }));
  const texts = {
    "/jobs": "Failed",
    "/batches": "1 of 1",
    [`/batches/${equal}`]: "cpu",
    "/suites": suite,
    [`/suites/${suite}`]: "ccccccc on main",
    [`/jobs/${batch.jobs[0]?.id}`]: "Same recipe, machine and runtime",
    "/tokens": "first",
    "/project": "vision",
    "/audit": "Submit batch",
  };
  for (const [path, text] of Object.entries(texts)) {
    await page.goto(origin + path);
    await page.locator("tr").getByText(text).first().waitFor({ state: "attached" });
    for (const width of [390, 1024, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      assert.deepEqual(await listUnevenRows(page), [], `${path} at ${width} pixels`);
    }
  }
  await page.route("**/v1/audit?*", (route) => route.abort());
  await page.goto(`${origin}/audit`);
  await page.getByText("The entries could not be loaded").waitFor();
  assert.deepEqual(await listUnevenRows(page), []);
}

/** Texts of rows whose visible cells do not add up to the columns of their table. */
async function listUnevenRows(page: Page): Promise<string[]> {
  const tables = await page.locator("table").evaluateAll((found) =>
    found.map((table) =>
      [...table.querySelectorAll("tr:not([aria-hidden])")].map((row) => {
        const cells = [...row.querySelectorAll("th, td")].filter((cell) => cell.clientWidth > 0);
        const spans = cells.map((cell) => Number(cell.getAttribute("colspan") ?? 1));
        return { text: row.textContent, columns: spans.reduce((sum, span) => sum + span, 0) };
      }),
    ),
  );
  return tables.flatMap(([head, ...rows]) => {
    assert.ok(head !== undefined && rows.length > 0, "a table without rows shows nothing");
    return rows.filter(({ columns }) => columns !== head.columns).map(({ text }) => text ?? "");
  });
}
