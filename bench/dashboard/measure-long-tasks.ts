import type { Page } from "playwright-core";
import { takeLongestTask, watchTasks } from "./longest-task.ts";
import type { Dashboard } from "../../test/dashboard/open-dashboard.ts";

const wheelPx = 400;
const wheelTurns = 200;

/** The longest task while a person scrolls through thousands of jobs. */
export async function measureScrolling(page: Page, { origin }: Dashboard): Promise<number> {
  await page.goto(`${origin}/jobs`);
  await page.locator("tbody .row-link").first().waitFor();
  await page.waitForLoadState("networkidle", { timeout: 5000 }).catch(() => undefined);
  await watchTasks(page);
  await page.mouse.move(600, 400);
  for (let turn = 0; turn < wheelTurns; turn++) await page.mouse.wheel(0, wheelPx);
  await page.waitForTimeout(500);
  return takeLongestTask(page);
}

/** The longest task while the page of a job loads a log of as many lines. */
export async function measureLogTasks(
  page: Page,
  { origin }: Dashboard,
  { id, lines }: { readonly id: string; readonly lines: number },
): Promise<number> {
  await page.goto(`${origin}/jobs/${id}`);
  await watchTasks(page);
  await page.getByText(`${lines.toLocaleString("en")} lines`).waitFor({ timeout: 600_000 });
  return takeLongestTask(page);
}
