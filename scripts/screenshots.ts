import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { demoModels } from "../src/demo/demo-models.ts";
import { type Dashboard, openDashboard, signInByLink } from "../test/dashboard/open-dashboard.ts";
import { runBatch } from "./run-batch.ts";

const folder = join(import.meta.dirname, "../docs/screenshots");

const looks: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 680 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 680 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
};

/** What is shown as on a phone too. */
const onPhones: ReadonlySet<string> = new Set(["jobs", "job", "compare"]);

/** Commits of a suite: the last one changes the recipe. */
const commits: readonly SuiteCommit[] = [
  { name: "nightly of 5a1b7e0", sha: "5a1b7e0".padEnd(40, "1"), recipe: {} },
  {
    name: "pr-1842",
    sha: "c81f02e".padEnd(40, "3"),
    recipe: { granularity: "tensor" },
  },
];

interface SuiteCommit {
  readonly name: string;
  readonly sha: string;
  readonly recipe: { readonly granularity?: "tensor" };
}

/** Runs a batch of a commit to its end. */
async function runCommit(
  { client }: Dashboard,
  models: readonly { readonly name: string; readonly source: string }[],
  { name, sha, recipe }: SuiteCommit,
) {
  const gates = { maxSizeRatio: 0.5, minSqnrDb: 16, maxSizeRegression: 0.1, maxLatencyRatio: 1.5 };
  return runBatch(client, {
    name,
    models: [...models],
    targets: ["cpu", "cpu-int8"],
    gates: { ...gates, warnGates: ["maxSizeRatio", "minSqnrDb", "maxLatencyRatio"] },
    recipe: { ...recipe, evaluation: { latencyBudgetSeconds: 8 } },
    suite: "mobile-vision",
    revision: { sha, branch: "main", base: { branch: "main" }, recordBaseline: true },
  });
}

/** Runs batches to their ends, and starts one more job. @returns addresses of pages by names */
async function prepareJobs(dashboard: Dashboard): Promise<Record<string, string>> {
  const { client } = dashboard;
  const models = [];
  for (const { name, file } of demoModels.slice(1)) {
    models.push({ name, source: (await client.uploadModel(file)).source });
  }
  const batches = [];
  for (const commit of commits) batches.push(await runCommit(dashboard, models, commit));
  for (const name of ["CI of acme/models", "laptop"]) {
    await client.call("createToken", { body: { name, scopes: ["jobs:read", "jobs:write"] } });
  }
  const [model] = models;
  if (model) await client.call("startCompression", { body: { model, target: "cpu" } });
  const last = batches.at(-1);
  const job = `/jobs/${last?.jobs[0]?.id}`;
  const batch = `/batches/${last?.id}`;
  const suite = "/suites/mobile-vision";
  const compared = batches.map(({ id }) => `batch=${id}`).join("&");
  const shown = {
    model: "/models/voice-activity",
    job,
    graph: `${job}#graph`,
    batch,
    compare: `/compare?${compared}`,
    suite,
    palette: "/jobs",
  };
  const plain = ["jobs", "new", "new-batch", "tokens"];
  return { ...Object.fromEntries(plain.map((name) => [name, `/${name}`])), ...shown };
}

/** What is done on a page before its picture is taken. */
const prepared: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  graph: async (page) => {
    await page.getByRole("application").waitFor();
    await page.getByRole("application").scrollIntoViewIfNeeded();
    await page.waitForTimeout(1000);
  },
  palette: async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill("voice");
    await page.waitForTimeout(1000);
  },
};

/** WebP has a third of the bytes of a PNG, so that the repository stays small. */
async function takePicture(page: Page, file: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const options = { format: "webp", quality: 85 } as const;
  const { data } = await session.send("Page.captureScreenshot", options);
  await writeFile(file, data, "base64");
  await session.detach();
}

test("pictures of what the docs show, of jobs that really ran", async (t) => {
  const dashboard = await openDashboard(t);
  const pages = await prepareJobs(dashboard);
  const storageState = await (await signInByLink(dashboard)).context().storageState();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [look, options] of Object.entries(looks)) {
    const page = await dashboard.openBrowser({ ...options, storageState });
    for (const [name, path] of Object.entries(pages)) {
      if (look === "phone" && !onPhones.has(name)) continue;
      await page.goto(dashboard.origin + path);
      await page.locator("main :is(h1, h2)").first().waitFor();
      // What a page loads besides its first answer has no event of its own.
      await page.waitForTimeout(1000);
      await prepared[name]?.(page);
      await takePicture(page, join(folder, `${name}-${look}.webp`));
    }
    await page.context().close();
  }
});
