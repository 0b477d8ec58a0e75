import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { startLocalProvider } from "../auth/local-provider.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { findFreePort } from "../support/free-port.ts";
import { assertNoComplaints, findBarriers, openDashboard } from "./open-dashboard.ts";

const skip = chromiumMissing;

/** The service with a real provider, at which Ada is of the group `vision`. */
async function openWithProvider(t: TestContext) {
  const port = await findFreePort();
  const publicUrl = `http://localhost:${port}`;
  const provider = await startLocalProvider(t, { publicUrl, groups: { ada: ["vision"] } });
  const folder = await mkdtemp(join(tmpdir(), "provider-"));
  t.after(() => rm(folder, { recursive: true }));
  const secretFile = join(folder, "secret");
  await writeFile(secretFile, `${provider.clientSecret}\n`);
  const environment = {
    MOS_PORT: String(port),
    MOS_PUBLIC_URL: publicUrl,
    MOS_OIDC_ISSUER: provider.issuer,
    MOS_OIDC_CLIENT_ID: provider.clientId,
    MOS_OIDC_CLIENT_SECRET_FILE: secretFile,
    MOS_OIDC_SCOPES: provider.scopes,
  };
  return openDashboard(t, { environment });
}

async function signInAs(page: Page, login: string): Promise<void> {
  await page.getByRole("link", { name: /^Sign in with localhost/ }).click();
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

test("people sign in at a real provider, and see what their groups may", { skip }, async (t) => {
  const dashboard = await openWithProvider(t);
  const { origin, baseUrl, token, openBrowser } = dashboard;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const put = (path: string, role: string) =>
    fetch(`${baseUrl}/projects/${path}`, {
      method: "PUT",
      headers,
      body: JSON.stringify({ role }),
    });
  assert.equal((await put("default/members/group:vision", "viewer")).status, 200);
  assert.equal((await put("audio", "")).status, 201);
  assert.equal((await put("audio/members/group:vision", "admin")).status, 200);

  const page = await openBrowser();
  await page.goto(`${origin}/targets`);
  await signInAs(page, "ada");
  await page.getByRole("heading", { name: "Targets", level: 1 }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Tokens" }).count(), 0);
  await page.getByText("ada <b>Lovelace</b>").click();
  await page.getByLabel("Project").selectOption("audio");
  await page.getByRole("link", { name: "Tokens" }).waitFor();

  const stranger = await openBrowser();
  await stranger.goto(origin);
  await signInAs(stranger, "eve");
  await stranger.getByRole("heading", { name: "No access yet" }).waitFor();
  const id = await stranger.getByRole("region", { name: "Your id" }).innerText();
  assert.deepEqual(await findBarriers(stranger), []);
  assert.equal((await put(`default/members/${id}`, "viewer")).status, 200);
  await stranger.reload();
  await stranger.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  await fetch(`${baseUrl}/projects/default/members/${id}`, { method: "DELETE", headers });
  await stranger.reload();
  await stranger.getByRole("heading", { name: "No access yet" }).waitFor();
  await stranger.getByRole("button", { name: "Sign out" }).click();
  await stranger.getByRole("link", { name: /^Sign in with/ }).waitFor();
  await stranger.goto(`${origin}/auth/callback?code=a&state=b`);
  await stranger.getByRole("alert").getByText("began in another browser").waitFor();
  assert.deepEqual(await findBarriers(stranger), []);
  assertNoComplaints(dashboard);
});
