import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { startLocalProvider } from "../auth/local-provider.ts";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { findFreePort } from "../support/find-free-port.ts";
import {
  assertNoComplaints,
  type Dashboard,
  endSessions,
  findBarriers,
  openDashboard,
  signInByLink,
} from "./open-dashboard.ts";

const skip = chromiumMissing;

const trustPolicy = `
issuers: [{ issuer: https://token.actions.githubusercontent.com, audience: https://mos.example }]
policies:
  - name: main
    issuer: https://token.actions.githubusercontent.com
    claims: { repository_owner_id: 9919, repository_id: 123456, ref: refs/heads/main }
    scopes: ["jobs:write"]
`;

/** The service with a real provider, at which Ada is of the group `vision`. */
async function openWithProvider(t: TestContext) {
  const port = await findFreePort();
  const publicUrl = `http://localhost:${port}`;
  const provider = await startLocalProvider(t, { publicUrl, groups: { ada: ["vision"] } });
  const folder = await mkdtemp(join(tmpdir(), "provider-"));
  t.after(() => rm(folder, { recursive: true }));
  const providerFile = join(folder, "single-sign-on.yaml");
  const trustFile = join(folder, "trust.yaml");
  const { issuer, clientId, clientSecret, scopes } = provider;
  await writeFile(providerFile, JSON.stringify({ issuer, clientId, clientSecret, scopes }));
  await writeFile(trustFile, trustPolicy);
  const environment = {
    MOS_PORT: String(port),
    MOS_PUBLIC_URL: publicUrl,
    MOS_OIDC_FILE: providerFile,
    MOS_TRUST_POLICY_FILE: trustFile,
  };
  return openDashboard(t, { environment });
}

/** Adds somebody on the page of the project, who has to have signed in for that. */
async function addByEmail(page: Page, email: string): Promise<void> {
  await page.getByRole("button", { name: "Add a member" }).click();
  await page.getByLabel("Person, by e-mail").last().fill("nobody@example.com");
  await page.getByRole("button", { name: "Add to default" }).click();
  await page.getByText("Nobody with this address has signed in").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  await page.getByLabel("Person, by e-mail").last().fill(email);
  await page.getByLabel("Role", { exact: true }).selectOption("viewer");
  await page.getByRole("button", { name: "Add to default" }).click();
}

async function checkTrust(page: Page): Promise<void> {
  const claims = page.getByLabel("Workflow claims");
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("A token from the policy “main”").waitFor();
  await claims.fill((await claims.inputValue()).replace("heads/main", "pull/7/merge"));
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("the claim ref does not match").waitFor();
  await claims.fill("{");
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("Enter a JSON object").waitFor();
}

async function signInAs(page: Page, login: string): Promise<void> {
  await page.getByRole("link", { name: /^Sign in with localhost/ }).click();
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Signs in anew in another tab, while a form of the page waits. */
async function signInInMidForm(page: Page, dashboard: Dashboard): Promise<void> {
  await page.getByRole("link", { name: "Tokens" }).click();
  await page.getByRole("button", { name: "New token" }).click();
  const name = page.getByLabel("Name");
  const scope = page.getByLabel("models:write");
  await name.fill("half a name");
  await scope.uncheck();
  await endSessions(page, dashboard);
  // The page may notice it before, and cover the button.
  await page.getByRole("button", { name: "Create token" }).dispatchEvent("click");
  const ended = page.getByRole("dialog", { name: "Your session has ended" });
  const opened = page.context().waitForEvent("page");
  await ended.getByRole("link", { name: /^Sign in with localhost/ }).click();
  const second = await opened;
  await ended.waitFor({ state: "detached" });
  await second.getByRole("heading", { name: "Tokens", level: 1 }).waitFor();
  await second.close();
  assert.deepEqual([await name.inputValue(), await scope.isChecked()], ["half a name", false]);
  assert.equal(await page.getByLabel("Project", { exact: true }).inputValue(), "audio");
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByRole("region", { name: "Access token" }).waitFor();
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
  await signInInMidForm(page, dashboard);

  const stranger = await openBrowser();
  await stranger.goto(origin);
  await signInAs(stranger, "eve");
  await stranger.getByRole("heading", { name: "No access yet" }).waitFor();
  assert.deepEqual(await findBarriers(stranger), []);
  const admin = await signInByLink(dashboard);
  await admin.getByRole("link", { name: "Project" }).click();
  await addByEmail(admin, "Eve@example.com");
  const role = admin.getByLabel("Role of eve <b>Lovelace</b>");
  await role.waitFor();
  await checkTrust(admin);
  await stranger.reload();
  await stranger.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  assert.equal(await stranger.getByRole("link", { name: "Tokens" }).count(), 0);
  const changed = admin.waitForResponse((answer) => answer.request().method() === "PUT");
  await role.selectOption("developer");
  assert.equal((await changed).status(), 200);
  await stranger.reload();
  await stranger.getByRole("link", { name: "Tokens" }).waitFor();
  await admin.getByRole("button", { name: "Remove eve <b>Lovelace</b>" }).click();
  await admin.getByRole("button", { name: "Remove", exact: true }).click();
  await role.waitFor({ state: "detached" });
  await stranger.reload();
  await stranger.getByRole("heading", { name: "No access yet" }).waitFor();
  await stranger.getByRole("button", { name: "Sign out" }).click();
  await stranger.getByRole("link", { name: /^Sign in with/ }).waitFor();
  await stranger.goto(`${origin}/auth/callback?code=a&state=b`);
  await stranger.getByRole("alert").getByText("began in another browser").waitFor();
  assert.deepEqual(await findBarriers(stranger), []);
  assertNoComplaints(dashboard);
});
