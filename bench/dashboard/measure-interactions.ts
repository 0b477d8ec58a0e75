import type { Page } from "playwright-core";
import type { Dashboard } from "../../test/dashboard/open-dashboard.ts";

interface Interaction {
  readonly what: string;
  /** From the input to the next frame. */
  readonly ms: number;
}

type Steps = Readonly<Record<string, (page: Page) => Promise<unknown>>>;

const steps: Steps = {
  "scroll through 500 jobs": async (page) => {
    for (let i = 0; i < 20; i++) await page.mouse.wheel(0, 1000);
  },
  "select a job": (page) => page.getByRole("checkbox").nth(3).click(),
  "choose a status": (page) => page.getByRole("link", { name: /^Failed/ }).click(),
  "show all jobs": (page) => page.getByRole("link", { name: /^All/ }).click(),
  "open the palette": (page) => page.keyboard.press("Control+k"),
  "type in the palette": (page) => page.keyboard.type("detector failed"),
  "close the palette": (page) => page.keyboard.press("Escape"),
  "open a job": (page) => page.locator("tbody .row-link").first().click(),
};

/** What a person does with the list of jobs, and how long until the page shows that it was done. */
export async function measureInteractions(
  page: Page,
  { origin }: Dashboard,
): Promise<Interaction[]> {
  await page.goto(`${origin}/jobs`);
  await page.locator("tbody .row-link").first().waitFor();
  await page.evaluate(watchInteractions);
  const measured: Interaction[] = [];
  for (const [what, step] of Object.entries(steps)) {
    await step(page);
    await page.waitForLoadState("networkidle", { timeout: 2000 }).catch(() => undefined);
    measured.push({ what, ms: Number(await page.evaluate(takeLongest)) });
  }
  return measured;
}

/** Scrolling is not an event of the list: a frame waits for tasks that are as long. */
const watchInteractions = `
  longestDelay = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestDelay = Math.max(longestDelay, duration);
  }).observe({ type: "event", durationThreshold: 16 });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestDelay = Math.max(longestDelay, duration);
  }).observe({ type: "longtask" });
`;
const takeLongest = "[longestDelay, (longestDelay = 0)][0]";
