import type { BrowserContextOptions, Page } from "playwright-core";
import type { Dashboard } from "../../test/dashboard/open-dashboard.ts";
import { median } from "../median.ts";

const views = 7;

interface FirstViews {
  /** Of everything that a browser without a cache loads, compressed. */
  readonly bytes: number;
  /** From the navigation to the first row, median. */
  readonly firstRowMs: number;
}

/** Opens the list of jobs, each time in a browser without a cache. */
export async function measureFirstViews(
  { openBrowser, origin }: Dashboard,
  storageState: NonNullable<BrowserContextOptions["storageState"]>,
): Promise<FirstViews> {
  const times: number[] = [];
  let bytes = 0;
  for (let view = 0; view < views; view++) {
    const page = await openBrowser({ storageState });
    const loaded = countBytes(page);
    await page.goto(`${origin}/jobs`);
    await page.locator("tbody .row-link").first().waitFor();
    times.push(await page.evaluate(() => performance.now()));
    bytes = Math.max(bytes, loaded.bytes);
    await page.context().close();
  }
  return { bytes, firstRowMs: median(times) };
}

function countBytes(page: Page): { bytes: number } {
  const counted = { bytes: 0 };
  page.on("requestfinished", (request) => {
    // The stream of changes has no end, and its size is not known.
    void request.sizes().then(
      ({ responseBodySize }) => (counted.bytes += responseBodySize),
      () => 0,
    );
  });
  return counted;
}
