import assert from "node:assert/strict";
import test from "node:test";
import { createSignInLink } from "../../src/auth/sign-in.ts";
import { withRecords } from "../../src/service/commands/with-records.ts";
import { recordsPlace } from "../../src/service/storage-folder/data-directory.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { assertNoComplaints, endSessions, openDashboard, signInByLink } from "./open-dashboard.ts";

test("signing in and out", { skip: chromiumMissing }, async (t) => {
  const dashboard = await openDashboard(t);

  await t.test("the printed link signs in once, and leaves the address", async () => {
    const page = await signInByLink(dashboard);
    assert.ok(!page.url().includes("#"));
    const [cookie] = await page.context().cookies();
    assert.equal(cookie?.httpOnly, true);
    assert.equal(cookie.sameSite, "Strict");
    assert.match(cookie.name, /^mos-session-\d+$/);
    const stranger = await dashboard.openBrowser();
    await stranger.goto(dashboard.signInLink);
    await stranger.getByRole("alert").getByText("used before").waitFor();
    assertNoComplaints(dashboard);
  });

  await t.test("signing out everywhere asks for a new link, and loses nothing typed", async () => {
    const page = await signInByLink(dashboard);
    await page.goto(`${dashboard.origin}/tokens`);
    await page.getByRole("button", { name: "New token" }).click();
    await page.getByLabel("Name").fill("half a name");
    await endSessions(page, dashboard);
    await page.getByRole("dialog").getByText("Your session has ended").waitFor();
    assert.equal(await page.getByLabel("Name").inputValue(), "half a name");
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  await t.test("the next session shows nothing of the previous project", async () => {
    const { client, directory, openBrowser, origin } = dashboard;
    const place = recordsPlace({ MOS_DATA_DIR: directory, MOS_DATABASE_URL: undefined });
    const createSecret = () =>
      withRecords(place, (records, now) => createSignInLink(records, "test", now));
    await client.call("createProject", { params: { project: "second" } });
    const page = await openBrowser();
    const secret = await createSecret();
    await page.goto(`${origin}/sign-in#${secret.slice(1)}`);
    await page.getByText("This is not a sign-in link").waitFor();
    // As where the whole link is pasted into the address of the same page.
    await page.goto(`${origin}/sign-in#${secret}`);
    await page.getByText("No jobs yet").waitFor();
    const headers = { "sec-fetch-site": "same-origin" };
    const switched = { headers, data: { project: "second" } };
    assert.ok((await page.request.put(`${origin}/v1/sessions/self`, switched)).ok());
    const model = { name: "only-of-second", source: "https://models.invalid/m.onnx" };
    const started = { headers, data: { model, target: "cpu" } };
    assert.ok((await page.request.post(`${origin}/v1/compress`, started)).ok());
    await page.goto(`${origin}/jobs`);
    await page.getByRole("link", { name: model.name }).waitFor();
    await page.locator("summary", { hasText: "administrator" }).click();
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.getByLabel("Sign-in link").fill(await createSecret());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No jobs yet").waitFor();
  });

  await t.test("the shell is the page at every address except those of the interface", async () => {
    const open = (path: string, accept = "text/html") =>
      fetch(dashboard.origin + path, { headers: { accept } });
    for (const path of ["/", "/jobs", "/jobs/x", "/..//evil.example"]) {
      const answer = await open(path);
      assert.equal(answer.status, 200, path);
      assert.match(answer.headers.get("content-security-policy") ?? "", /default-src 'none'/);
      assert.match(answer.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
    }
    assert.equal((await open("/v1/jobs")).status, 401);
    assert.equal((await open("/v1/nothing")).status, 404);
    // Programs get pages, and an error where there is none.
    assert.equal((await open("/", "*/*")).status, 200);
    assert.equal((await open("/nothing", "*/*")).status, 404);
    assert.equal((await open("/assets/../index.html")).status, 200);
    assert.equal((await open("/assets/%2e%2e%2fsources.sha256")).status, 404);
  });
});
