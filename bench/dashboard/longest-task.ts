import type { Page } from "playwright-core";

/** Has the page that is open keep its longest task. */
export async function watchTasks(page: Page): Promise<void> {
  await page.evaluate(`
    longestTask = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longestTask = Math.max(longestTask, duration);
    }).observe({ type: "longtask" });
  `);
}

/** In milliseconds since it was last asked; 0 where none took 50. */
export async function takeLongestTask(page: Page): Promise<number> {
  return Number(await page.evaluate("[longestTask, (longestTask = 0)][0]"));
}
