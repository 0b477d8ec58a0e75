import assert from "node:assert/strict";
import test from "node:test";
import type { Page } from "playwright-core";
import type { JobRequest } from "../../src/contract/jobs/job.ts";
import { demoModels } from "../../src/demo/demo-models.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import {
  assertFitsAllLooks,
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";

const skip = chromiumMissing;
const recipes: readonly JobRequest["recipe"][] = [
  { scheme: "fp16" },
  { scheme: "int8-weight", granularity: "tensor" },
  { scheme: "int8-weight", granularity: "channel" },
];

/** One model by three recipes, of which the second fails a gate. */
async function runRecipes({ client }: Dashboard): Promise<void> {
  const voice = demoModels.find(({ name }) => name === "voice-activity");
  const { source } = await client.uploadModel(voice?.file ?? "");
  for (const recipe of recipes) {
    const { id } = await client.call("startCompression", {
      body: {
        model: { source, name: "voice-activity" },
        target: "cpu",
        recipe,
        gates: { maxSizeRatio: 0.6, minSqnrDb: 40 },
      },
    });
    await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  }
}

test("jobs are compared, models have pages, and batches are started there", { skip }, async (t) => {
  const dashboard = await openDashboard(t);
  const page = await signInByLink(dashboard);
  await runRecipes(dashboard);
  await t.test("ticked jobs are compared by figures, recipe and a chart", () =>
    compareTicked(page, dashboard),
  );
  await t.test("a dry run, and another way to measure accuracy, beat nothing", () =>
    compareUnlike(page, dashboard),
  );
  await t.test("a model has versions, best results and programs", () => openModel(page, dashboard));
  await t.test("a batch of several recipes is started and compared", () =>
    startBatch(page, dashboard),
  );
  await t.test("a model that is known is chosen for a job by its name", () =>
    pickModel(page, dashboard),
  );
  assertNoComplaints(dashboard);
});

async function compareTicked(page: Page, { origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/jobs`);
  const boxes = page.getByRole("checkbox", { name: /^Select voice-activity/ });
  await boxes.first().waitFor();
  for (const box of await boxes.all()) await box.check();
  await page.getByRole("link", { name: "Compare 3" }).click();
  await page.getByRole("heading", { name: "Compare 3 jobs" }).waitFor();
  const best = page.getByRole("heading", { name: "Smallest that passes" }).locator("..");
  await best.getByRole("link", { name: "A, int8-weight · channel" }).waitFor();
  await page.getByRole("row", { name: /^granularity channel tensor channel$/ }).waitFor();
  await page.getByRole("row", { name: /^scheme int8-weight int8-weight fp16$/ }).waitFor();
  const accuracy = page.getByRole("row", { name: /^Accuracy \(SQNR\)/ });
  assert.match(await accuracy.innerText(), /\d+\.\d dB\s*best$/);
  assert.equal(await page.getByRole("row", { name: /^minElements/ }).count(), 0);
  await page.getByRole("button", { name: /^Show \d+ equal fields$/ }).click();
  await page.getByRole("row", { name: /^minElements 256 256 256$/ }).waitFor();
  const point = page.locator(".plot").getByRole("link", { name: /fails 1 gate$/ });
  assert.equal(await point.count(), 1);
  const figures = page.getByRole("group", { name: "Figures" });
  await figures.getByRole("button", { name: "Latency and accuracy" }).click();
  await figures.getByRole("button", { name: "Latency and accuracy", pressed: true }).waitFor();
  assert.equal(await figures.getByRole("button", { pressed: true }).count(), 1);
  await assertFitsAllLooks(page, page.url());
  await page.getByRole("link", { name: /^Compare without C/ }).click();
  await page.getByRole("heading", { name: "Compare 2 jobs" }).waitFor();
  await page.goto(`${page.url()}&job=job-${"0".repeat(26)}`);
  await page.getByText("1 more job is not there: deleted, or of another project.").waitFor();
  await page.getByRole("heading", { name: "Compare 2 jobs" }).waitFor();
}

async function compareUnlike(page: Page, { client, origin }: Dashboard): Promise<void> {
  const { jobs } = await client.call("listJobSummaries", { query: { limit: "1" } });
  const { model } = await client.call("getJob", { params: { id: jobs[0]?.id ?? "" } });
  const start = async (more: Partial<JobRequest>) => {
    const body = { model: { source: model.source, name: "unlike" }, target: "cpu", ...more };
    const { id } = await client.call("startCompression", { body });
    await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
    return id;
  };
  const planned = await start({
    dryRun: true,
    recipe: { scheme: "int4-weight", fallback: "int8-weight" },
  });
  const weighed = await start({ recipe: { evaluation: { level: "weights" } } });
  await page.goto(`${origin}/compare?job=${jobs[0]?.id}&job=${planned}&job=${weighed}`);
  await page
    .getByText(
      /^Accuracy was measured in ways .*: A on generated samples; C by the worst weight\.$/,
    )
    .waitFor();
  const best = (title: string) => page.getByRole("heading", { name: title }).locator("..");
  await best("Smallest that passes")
    .getByRole("link", { name: /^[AC], / })
    .waitFor();
  await best("Most accurate that passes").getByText("not measured alike").waitFor();
  await page.getByText("1 whose accuracy was not measured on generated samples is left").waitFor();
  const accuracy = page.getByRole("row", { name: /^Accuracy \(SQNR\)/ });
  assert.doesNotMatch(await accuracy.innerText(), /best/);
  await assertFitsAllLooks(page, page.url());
  await page.goto(`${origin}/compare?job=${planned}`);
  await page.getByText("These are dry runs, which have no result.").waitFor();
  await page.goto(`${origin}/jobs/${planned}`);
  await page
    .getByRole("row", { name: /not measured$/ })
    .first()
    .waitFor();
}

async function openModel(page: Page, { origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/models`);
  const link = page.getByRole("link", { name: "voice-activity" });
  await link.waitFor();
  await assertFitsAllLooks(page, page.url());
  await link.click();
  await page.getByRole("heading", { name: "voice-activity", level: 1 }).waitFor();
  const best = page.getByRole("region", { name: "Best result for each target" });
  await best.getByRole("row", { name: /^cpu int8-weight 729 kB \(31 %\)/ }).waitFor();
  const download = best.getByRole("link", { name: "Download the model for cpu", exact: true });
  assert.match(String(await download.getAttribute("href")), /\/artifacts\/model\.onnx$/);
  await page.getByRole("cell", { name: "2623a2953f6f…" }).waitFor();
  await page.getByText("opset 16").waitFor();
  await page.getByRole("row", { name: "sr input int64[]" }).waitFor();
  const program = page.getByRole("region", { name: "Python program" });
  assert.match(await program.innerText(), /"sr": np\.zeros\(\(\), dtype=np\.int64\)/);
  await page.getByRole("button", { name: "JavaScript" }).click();
  await page.getByRole("region", { name: "JavaScript program" }).waitFor();
  await assertFitsAllLooks(page, page.url());
}

async function startBatch(page: Page, { client, origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/models/voice-activity`);
  await page.getByRole("link", { name: "Try several recipes" }).click();
  await page
    .getByText(/^voice-activity, upload 2623/)
    .first()
    .waitFor();
  await page.getByRole("checkbox", { name: /^cpu Any CPU/ }).check();
  await page.getByRole("checkbox", { name: /^cpu-int8/ }).check();
  await page.getByRole("checkbox", { name: /^fp16/ }).check();
  await page.getByText("1 model × 2 targets × 2 recipes = 4 jobs").waitFor();
  await assertFitsAllLooks(page, page.url());
  await page.getByLabel("Maximum size").fill("many");
  await page.getByRole("button", { name: "Start 4 jobs" }).click();
  await page.getByText("Enter a number above 0").waitFor();
  await page.getByLabel("Maximum size").fill("0.6");
  await page.getByRole("button", { name: "Start 4 jobs" }).click();
  await page.getByRole("heading", { name: "Compare 4 jobs" }).waitFor();
  const { batches } = await client.call("listBatches", {});
  assert.equal(batches.length, 2);
  for (const { id } of batches) {
    const { jobs } = await client.call("getBatch", { params: { id } });
    for (const job of jobs) {
      const params = { id: job.id };
      const ended = await client.call("getJob", { params, headers: { prefer: "wait=60" } });
      assert.equal(ended.gateLimits.maxSizeRatio, 0.6);
    }
  }
  await page.getByRole("heading", { name: "Fastest that passes" }).waitFor();
  await checkPlaces(page);
}

/** The same recipe for two targets gives equal results, of which none hides the other. */
async function checkPlaces(page: Page): Promise<void> {
  await page.getByText("results with the same figures, or nearly").waitFor();
  const points = page.locator(".plot").getByRole("link");
  await points.nth(3).waitFor();
  assert.equal(await points.count(), 4);
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    for (const point of await points.all()) await point.click({ trial: true });
  }
}

async function pickModel(page: Page, { origin }: Dashboard): Promise<void> {
  await page.goto(`${origin}/new`);
  // The first target is chosen once they are loaded.
  await page.getByText(/^Any CPU/).waitFor();
  const picker = page.getByLabel("or a model that is known here");
  await picker.selectOption({ label: "voice-activity, upload 2623a2953f6f" });
  assert.match(await page.getByLabel("or its address").inputValue(), /^upload:sha256:2623/);
  await page.getByRole("button", { name: "Start job" }).click();
  await page.locator("h1").getByText("voice-activity").waitFor();
  const log = page.getByRole("log");
  await log.getByText(/^\[optimize\] Plan/).waitFor();
  await page.locator("h1 .status").getByText("Completed").waitFor();
  // Further matches of the search would come with the log's last lines.
  await page.getByRole("button", { name: "Following" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^optimize \d$/ }).click();
  await log
    .getByText(/^\[optimize\]/)
    .first()
    .waitFor({ state: "detached" });
  await page.getByLabel("Search the log").fill("weights");
  await page
    .getByRole("status")
    .getByText(/^1 of [2-9]$/)
    .waitFor();
  await page.getByRole("button", { name: "Previous match" }).click();
  await page
    .getByRole("status")
    .getByText(/^([2-9]) of \1$/)
    .waitFor();
  assert.ok((await page.locator(".log-line.is-match").count()) > 1);
  assert.deepEqual(await findBarriers(page), []);
}
