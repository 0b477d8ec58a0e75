import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import type { Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { until } from "../support/until.ts";
import { startReceiver } from "../webhooks/receiver.ts";
import {
  assertNoComplaints,
  type Dashboard,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";

const skip = chromiumMissing;
const notices = `
  notices = [];
  Notification = class extends EventTarget {
    static requestPermission = async () => "granted";
    constructor(title, { body }) { super(); notices.push(title + ": " + body); }
  };
`;

test("webhooks and notifications say what ended", { skip }, async (t) => {
  const environment = { MOS_ALLOW_PRIVATE_ADDRESSES: "true", MOS_WORKERS: "1" };
  const host = await listenLocally(t, createServer());
  const dashboard = await openDashboard(t, { environment });
  const receiver = await startReceiver(t);
  const page = await signInByLink(dashboard);
  await t.test("a webhook is created, and its secret shown once", () => create(page, receiver.url));
  await t.test("a tab says how its job stands, and the browser that it ended", () =>
    followJob(page, dashboard, host),
  );
  await t.test("deliveries are listed and sent again, and a webhook is deleted", () =>
    readDeliveries(page, dashboard, receiver),
  );
  assertNoComplaints(dashboard);
});

async function create(page: Page, url: string): Promise<void> {
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByText("No webhooks yet").waitFor();
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Address").fill("mailto:somebody");
  await dialog.getByRole("button", { name: "Create webhook" }).click();
  await dialog.getByText("Invalid URL").waitFor();
  await dialog.getByLabel("Address").fill(`${url}/events`);
  await dialog.getByRole("button", { name: "Create webhook" }).click();
  const secret = await dialog.getByRole("region", { name: "Secret" }).innerText();
  assert.match(secret, /^whsec_/);
  await dialog.getByRole("button", { name: "I have copied it" }).click();
  await page.getByText("never delivered").waitFor();
}

/** @param host that never answers: its first job has the only worker */
async function followJob(page: Page, { client, origin }: Dashboard, host: string): Promise<void> {
  await page.addInitScript(notices);
  await page.goto(`${origin}/jobs`);
  const models = ["vad-1", "vad-2"].map((name) => ({ source: `${host}/m.onnx`, name }));
  const { id: batch, jobs } = await client.call("submitBatch", {
    body: { models, targets: ["cpu"] },
  });
  const followed = jobs.at(-1);
  assert.ok(followed);
  await page.goto(`${origin}/jobs/${followed.id}`);
  const readIcon = () => page.locator('link[rel="icon"]').getAttribute("href");
  await page.getByRole("button", { name: "Notify me" }).click();
  await page.getByRole("button", { name: "Will be notified" }).waitFor();
  const waiting = await readIcon();
  assert.match(await page.title(), /^… vad-2/);
  await client.call("cancelBatch", { params: { id: batch } });
  await until("the tab says it", async () => (await page.title()).startsWith("vad-2"));
  const said = await until("the browser says it", async () => {
    const all = await page.evaluate<string[]>("notices");
    return all.length > 0 && all;
  });
  assert.deepEqual(said, ["vad-2 for cpu: Cancelled"]);
  assert.match(waiting ?? "", /^data:image\/svg/);
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

async function readDeliveries(page: Page, { origin }: Dashboard, receiver: Receiver) {
  await page.goto(`${origin}/webhooks`);
  await page.getByText("All delivered").waitFor();
  await page.getByRole("button", { name: "Deliveries" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("answered 204").first().waitFor();
  const before = receiver.received.length;
  await dialog
    .getByRole("button", { name: /^Send again: job/ })
    .first()
    .click();
  await receiver.next(before);
  assert.deepEqual(await findBarriers(page), []);
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete webhook" }).click();
  await page.getByText("No webhooks yet").waitFor();
}
