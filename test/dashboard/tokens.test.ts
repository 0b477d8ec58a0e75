import assert from "node:assert/strict";
import test from "node:test";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { openDashboard, signInByLink } from "./open-dashboard.ts";

test("tokens", { skip: chromiumMissing }, async (t) => {
  const dashboard = await openDashboard(t);

  await t.test(
    "a token is made in the page, works at once, and is refused once it is revoked",
    async () => {
      const page = await signInByLink(dashboard);
      await page.getByRole("link", { name: "Tokens" }).click();
      await page.getByRole("button", { name: "New token" }).click();
      await page.getByLabel("Name").fill("laptop <img src=x onerror=alert(1)>");
      await page.getByRole("button", { name: "Create token" }).click();
      const token = await page.getByRole("region", { name: "Access token" }).innerText();
      assert.match(token, /^mos_\w{36}$/);
      const command = await page.getByRole("region", { name: "curl command" }).innerText();
      assert.ok(command.includes(token) && command.endsWith("/v1/tokens/self"));

      const ask = () =>
        fetch(`${dashboard.baseUrl}/jobs`, { headers: { authorization: `Bearer ${token}` } });
      assert.equal((await ask()).status, 200);
      await page.getByRole("button", { name: "I have copied it" }).click();
      assert.ok(!(await page.content()).includes(token));

      await page.getByRole("button", { name: /^Revoke laptop/ }).click();
      await page.getByRole("button", { name: "Revoke token" }).click();
      await page.getByText(/^Revoked/).waitFor();
      assert.equal((await ask()).status, 401);
      assert.deepEqual(dashboard.complaints, []);
    },
  );

  await t.test("a form says which field is wrong, and keeps what was typed", async () => {
    const page = await signInByLink(dashboard);
    await page.goto(`${dashboard.origin}/tokens`);
    await page.getByRole("button", { name: "New token" }).click();
    for (const scope of ["jobs:read", "jobs:write", "models:write"]) {
      await page.getByLabel(scope).uncheck();
    }
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("Fill this in").waitFor();
    await page.getByText("Choose at least one").waitFor();
    await page.getByLabel("Name").fill("x".repeat(101));
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("At most 100 characters").waitFor();
    assert.equal(await page.getByLabel("Name").inputValue(), "x".repeat(101));
  });

  await t.test("a rotated token works, and the old one expires in a day", async () => {
    const page = await signInByLink(dashboard);
    await page.goto(`${dashboard.origin}/tokens`);
    await page.getByRole("button", { name: "Rotate first" }).click();
    const token = await page.getByRole("region", { name: "Access token" }).innerText();
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await fetch(`${dashboard.baseUrl}/tokens`, { headers })).status, 200);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByText(/^in 2\d h/).waitFor();
    assert.equal(await page.getByRole("button", { name: "Rotate first" }).count(), 1);
  });
});
