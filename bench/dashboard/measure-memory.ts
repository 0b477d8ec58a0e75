import type { CDPSession, Page } from "playwright-core";
import { setTimeout as delay } from "node:timers/promises";
import { median } from "../median.ts";
import type { Dashboard } from "../../test/dashboard/open-dashboard.ts";

interface MemoryOptions {
  readonly seconds: number;
  /** A model that a job waits for. */
  readonly source: string;
}

interface Reading {
  readonly seconds: number;
  readonly heapMB: number;
  readonly nodes: number;
}

interface Memory {
  readonly course: readonly Reading[];
  /** Medians of the last third of the readings beside the first third's: some catch a redraw. */
  readonly heapGrowth: number;
  readonly nodeGrowth: number;
}

const pauseMs = 500;
/** Jobs between two readings. */
const jobsPerReading = 60;

/** Leaves the list open while jobs start and end, and shows the new ones. */
export async function measureMemory(
  page: Page,
  dashboard: Dashboard,
  { seconds, source }: MemoryOptions,
): Promise<Memory> {
  await page.goto(`${dashboard.origin}/jobs`);
  await page.locator("tbody .row-link").first().waitFor();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const start = performance.now();
  // Once, so that what is loaded at first use is there.
  await runJobs(page, dashboard, source);
  const course = [await readMemory(devtools, start)];
  while (performance.now() - start < 1000 * seconds) {
    await runJobs(page, dashboard, source);
    course.push(await readMemory(devtools, start));
  }
  return {
    course,
    heapGrowth: computeGrowth(course.map(({ heapMB }) => heapMB)),
    nodeGrowth: computeGrowth(course.map(({ nodes }) => nodes)),
  };
}

function computeGrowth(readings: readonly number[]): number {
  const third = Math.ceil(readings.length / 3);
  return median(readings.slice(-third)) / median(readings.slice(0, third));
}

async function runJobs(page: Page, { client }: Dashboard, source: string): Promise<void> {
  for (let count = 0; count < jobsPerReading; count++) {
    const body = { model: { source }, target: "cpu" };
    const { id } = await client.call("startCompression", { body });
    await delay(pauseMs);
    await client.call("cancelJob", { params: { id } });
  }
  await page.getByRole("button", { name: /new$/ }).click();
}

async function readMemory(devtools: CDPSession, start: number): Promise<Reading> {
  await devtools.send("HeapProfiler.collectGarbage");
  const { metrics } = await devtools.send("Performance.getMetrics");
  const read = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? 0;
  return {
    seconds: Math.round((performance.now() - start) / 1000),
    heapMB: read("JSHeapUsedSize") / 1e6,
    nodes: read("Nodes"),
  };
}
