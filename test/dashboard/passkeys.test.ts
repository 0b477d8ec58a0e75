import assert from "node:assert/strict";
import test from "node:test";
import type { Page } from "playwright-core";
import { chromiumMissing } from "../support/cluster/cluster-missing.ts";
import { assertNoComplaints, findBarriers, openDashboard, signInByLink } from "./open-dashboard.ts";

const skip = chromiumMissing;

/** Gives a browser an authenticator, as a laptop has one. */
async function addAuthenticator(page: Page): Promise<void> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("WebAuthn.enable");
  await devTools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

test(
  "a person registers a passkey, and signs in with it until it is deleted",
  { skip },
  async (t) => {
    const dashboard = await openDashboard(t);
    const page = await signInByLink(dashboard);
    await addAuthenticator(page);
    await page.getByText("administrator").click();
    await page.getByRole("link", { name: "Account" }).click();
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("Use 1 to 100 characters").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("laptop <b>");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Rename laptop <b>" }).waitFor();
    assert.deepEqual(await findBarriers(page), []);

    const [cookie] = await page.context().cookies();
    const askElsewhere = () =>
      fetch(`${dashboard.baseUrl}/self`, {
        headers: { cookie: `${cookie?.name}=${cookie?.value}` },
      });
    assert.equal((await askElsewhere()).status, 200);
    await page.getByRole("button", { name: "Sign out of all" }).click();
    await page.getByRole("button", { name: "Sign in with a passkey" }).first().click();
    await page.getByText("by a passkey").waitFor();
    assert.equal((await askElsewhere()).status, 401);
    await page.getByRole("button", { name: /^Rename/ }).click();
    await page.getByLabel("Name", { exact: true }).fill("desk");
    await page.getByRole("button", { name: "Rename", exact: true }).click();
    await page.getByRole("button", { name: "Rename desk" }).waitFor();

    await page.getByRole("button", { name: /^Delete/ }).click();
    await page.getByText("With a passkey you sign in").waitFor();
    await page.getByRole("button", { name: "Sign out of all" }).click();
    await page.getByRole("button", { name: "Sign in with a passkey" }).first().click();
    await page.getByRole("alert").getByText("not known here").first().waitFor();
    assertNoComplaints(dashboard);
  },
);
