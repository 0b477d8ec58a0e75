import type { BrowserContextOptions } from "playwright-core";
import type { Dashboard } from "../../test/dashboard/open-dashboard.ts";

/** A poor mobile connection. */
const network = {
  offline: false,
  latency: 400,
  downloadThroughput: 50_000,
  uploadThroughput: 50_000,
};

interface SlowView {
  /** Until something is on the page. */
  readonly shellMs: number;
  readonly firstRowMs: number;
}

/** Opens the list of jobs over a slow connection, in a browser without a cache. */
export async function measureSlowView(
  { openBrowser, origin }: Dashboard,
  storageState: NonNullable<BrowserContextOptions["storageState"]>,
): Promise<SlowView> {
  const page = await openBrowser({ storageState });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", network);
  await page.goto(`${origin}/jobs`, { waitUntil: "commit" });
  await page.locator("tbody .row-link").first().waitFor();
  const firstRowMs = await page.evaluate(() => performance.now());
  const shellMs = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
  );
  await page.context().close();
  if (shellMs === undefined) throw new Error("The page was not painted");
  return { shellMs, firstRowMs };
}
