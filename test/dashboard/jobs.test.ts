import assert from "node:assert/strict";
import test from "node:test";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { openDashboard, signInByLink } from "./open-dashboard.ts";

const skip = chromiumMissing;

test(
  "a list longer than the window has the columns of its head and no more",
  { skip },
  async (t) => {
    const dashboard = await openDashboard(t);
    const models = Array.from({ length: 100 }, (_, i) => ({
      source: `https://models.invalid/${i}.onnx`,
      name: `model-${i}`,
    }));
    const { id } = await dashboard.client.call("submitBatch", {
      body: { models, targets: ["cpu", "cpu-int8"] },
    });
    const page = await signInByLink(dashboard);
    for (const width of [390, 1024, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${dashboard.origin}/jobs`);
      await page.locator("tbody tr.spacer").last().waitFor({ state: "attached" });
      const gap = await page.locator("table.jobs").evaluate((table) => {
        const heads = [...table.querySelectorAll("th")].filter((th) => th.offsetWidth > 0);
        const right = Math.max(...heads.map((th) => th.getBoundingClientRect().right));
        return Math.abs(table.getBoundingClientRect().right - right);
      });
      assert.ok(gap < 2, `at ${width} pixels a column without a head is ${gap} pixels wide`);
    }
    await dashboard.client.call("cancelBatch", { params: { id } });
  },
);
