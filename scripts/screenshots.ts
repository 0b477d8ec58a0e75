import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import type { BrowserContextOptions } from "playwright-core";
import { demoModels } from "../src/demo/demo-models.ts";
import { type Dashboard, openDashboard, signInByLink } from "../test/dashboard/open-dashboard.ts";

const folder = join(import.meta.dirname, "../docs/screenshots");

const looks: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 680 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 680 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
};

/** Runs a batch to its end, and starts one more job. @returns the pages' addresses by their names */
async function prepareJobs({ client }: Dashboard): Promise<Record<string, string>> {
  const models = [];
  for (const { name, file } of demoModels) {
    models.push({ name, source: (await client.uploadModel(file)).source });
  }
  const gates = { maxSizeRatio: 0.5, minSqnrDb: 20, maxLatencyRatio: 1.5 };
  const recipe = { evaluation: { latencyBudgetSeconds: 4 } };
  const request = { models, targets: ["cpu", "cpu-int8"], gates, recipe, suite: "mobile-vision" };
  const batch = await client.call("submitBatch", { body: request });
  for (const { id } of batch.jobs) {
    for (let isOpen = true; isOpen;) {
      const job = await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
      isOpen = job.finishedAt === null;
    }
  }
  for (const name of ["CI of acme/models", "laptop"]) {
    await client.call("createToken", { body: { name, scopes: ["jobs:read", "jobs:write"] } });
  }
  const [model] = models;
  if (model) await client.call("startCompression", { body: { model, target: "cpu", gates } });
  const shown = { job: `/jobs/${batch.jobs[2]?.id}`, batch: `/batches/${batch.id}` };
  const plain = ["jobs", "new", "tokens", "targets", "audit"].map((name) => [name, `/${name}`]);
  return { ...Object.fromEntries(plain), ...shown };
}

test("pictures of every page, of jobs that really ran", async (t) => {
  const dashboard = await openDashboard(t);
  const pages = await prepareJobs(dashboard);
  const storageState = await (await signInByLink(dashboard)).context().storageState();
  await mkdir(folder, { recursive: true });
  for (const [look, options] of Object.entries(looks)) {
    const page = await dashboard.openBrowser({ ...options, storageState });
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(dashboard.origin + path);
      await page.locator("main :is(h1, h2)").first().waitFor();
      // What a page loads besides its first answer has no event of its own.
      await page.waitForTimeout(1000);
      await page.screenshot({ path: join(folder, `${name}-${look}.png`) });
    }
    await page.context().close();
  }
});
