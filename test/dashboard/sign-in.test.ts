import assert from "node:assert/strict";
import test from "node:test";
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
