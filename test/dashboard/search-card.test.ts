import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { writeLayeredModel } from "../support/layered-model.ts";
import { assertNoComplaints, findBarriers, openDashboard, signInByLink } from "./open-dashboard.ts";

test("a job's page has what a search ran", { skip: chromiumMissing }, async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "search-card-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "layered.onnx");
  await writeLayeredModel(file);
  const dashboard = await openDashboard(t);
  const page = await signInByLink(dashboard);
  const { client, origin } = dashboard;
  const { source } = await client.uploadModel(file);
  const evaluation = { samples: 2, latencyBudgetSeconds: 0 };
  const recipe = { auto: { minSqnrDb: 30, samples: 2, points: 4 }, evaluation };
  const { id } = await client.call("startCompression", {
    body: { model: { source, name: "layered" }, target: "cpu", recipe },
  });
  const job = await client.call("getJob", { params: { id }, headers: { prefer: "wait=60" } });
  await page.goto(`${origin}/jobs/${id}`);
  const card = page.locator("section.card", { has: page.getByRole("heading", { name: "Search" }) });
  await card.getByText("The result reaches the goal.").waitFor();
  const points = card.locator(".plot-point");
  assert.equal(await points.count(), job.telemetry.search?.points.length);
  const text = await card.locator(".plot-point.is-front").innerText();
  assert.match(text, /^The result, [\d.]+ kB, 3\d\.\d dB/);
  await card.getByText("limit 30 dB").waitFor();
  await card.getByText("bad", { exact: true }).waitFor();
  assert.deepEqual(await findBarriers(page), []);
  assertNoComplaints(dashboard);
});
