import assert from "node:assert/strict";
import test from "node:test";
import { firefoxMissing } from "../support/cluster/cluster-missing.ts";
import { until } from "../support/until.ts";
import { openDashboard } from "./open-dashboard.ts";
import { openFirefox } from "./open-firefox.ts";

/** As WebDriver writes it. */
const enterKey = "\uE007";

test(
  "a first job of the sample runs in Firefox, live, with its log and its graph",
  { skip: firefoxMissing },
  async (t) => {
    const { client, origin, signInLink } = await openDashboard(t);
    const page = await openFirefox(t);
    await page.goto(signInLink);
    await page.waitFor("h1", "Jobs");
    await page.click("a", "Try the sample model");
    await page.waitFor("form", "Uploaded");
    await page.click("button", "Start job");
    await page.waitFor("h1 .status", "Completed");
    await page.waitFor("[role=log]", "Size: ");
    await page.click("button", "Open the graph");
    await page.waitFor("[role=application]");
    await page.click(".node-row", "MatMul");
    await page.waitFor("[aria-label='Selected node']", "constant, float32[");
    await until("the graph is drawn", async () => {
      return (await page.evaluate<number>(countColours, "[role=application]")) > 3;
    });

    await page.click("a[href='/jobs']");
    await page.waitFor(".live", "Live");
    await page.waitFor("td", "sample");
    const { jobs } = await client.call("listJobs", {});
    assert.equal(jobs.length, 1);
    await page.type(`/status:failed${enterKey}`);
    await page.waitFor("main", "No jobs match these filters");
    await page.goto(`${origin}/nothing`);
    await page.waitFor("h1");
    assert.deepEqual(page.complaints, []);
  },
);

/** Of pixels that are drawn on a canvas. */
const countColours = `(selector) => {
  const canvas = document.querySelector(selector);
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}`;
