import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import axe, { type AxeResults, type RunOptions } from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { buildDashboard } from "../../scripts/build-dashboard.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";

export interface Dashboard extends RunningService {
  /** Where the page is, without a path. */
  readonly origin: string;
  /** Opens another browser, with cookies of its own. */
  readonly openBrowser: (options?: BrowserContextOptions) => Promise<Page>;
  /** What browsers complained of: scripts that failed, and breaches of the page's policy. */
  readonly complaints: string[];
}

/** Longest wait of a page: a busy machine is no reason to fail. */
const patienceMs = 120_000;

/** A name of this machine that is not loopback's, so that browsers trust it only with TLS. */
export const plainHost = "plain.test";

interface DashboardOptions {
  readonly from?: Pick<RunningService, "directory" | "token">;
  /** Data folder of a first run; by default a new one. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts the service with its page, and a browser where one is opened, until the test has ended. */
export async function openDashboard(
  t: Pick<TestContext, "after">,
  options: DashboardOptions = {},
): Promise<Dashboard> {
  await buildDashboard();
  const service = await startRunningService(t, options);
  let browser: Promise<Browser> | undefined;
  t.after(async () => (await browser)?.close());
  const complaints: string[] = [];
  const openBrowser = async (context: BrowserContextOptions = {}) => {
    const args = [`--host-resolver-rules=MAP ${plainHost} 127.0.0.1`];
    browser ??= chromium.launch({ executablePath: "/usr/bin/chromium", args });
    const opened = await (await browser).newContext({ reducedMotion: "reduce", ...context });
    opened.setDefaultTimeout(patienceMs);
    const page = await opened.newPage();
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => {
      if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) {
        complaints.push(message.text());
      }
    });
    return page;
  };
  const origin = new URL(service.baseUrl).origin.replace("127.0.0.1", "localhost");
  return { ...service, origin, openBrowser, complaints };
}

type Session = Exclude<BrowserContextOptions["storageState"], string | undefined>;
/** Of the first sign-in, since a link can be used once. */
const sessions = new WeakMap<Dashboard, Session>();

/**
 * Opens the list of jobs signed in, first by the link that the service printed.
 * @param page by default one of another browser
 */
export async function signInByLink(dashboard: Dashboard, page?: Page): Promise<Page> {
  const { openBrowser, origin, signInLink } = dashboard;
  const storageState = sessions.get(dashboard);
  const opened = page ?? (await openBrowser(storageState && { storageState }));
  await opened.goto(storageState === undefined ? signInLink : `${origin}/jobs`);
  await opened.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  if (storageState === undefined) sessions.set(dashboard, await opened.context().storageState());
  return opened;
}

/** Ends all sessions of the person who is signed in there, of which the page knows nothing. */
export async function endSessions(page: Page, { origin }: Dashboard): Promise<void> {
  const cookies = await page.context().cookies();
  const session = cookies.find(({ name }) => name.startsWith("mos-session"));
  const answer = await fetch(`${origin}/v1/sessions`, {
    method: "DELETE",
    headers: { cookie: `${session?.name}=${session?.value}`, "sec-fetch-site": "same-origin" },
  });
  assert.equal(answer.status, 204);
}

/** Rules of axe that may find something else in other colours. */
const colourRules = ["color-contrast", "link-in-text-block"];

/** All findings of axe, also by the rules that it does not apply of itself. */
export async function findBarriers(page: Page): Promise<string[]> {
  const rules = {
    "target-size": { enabled: true },
    "label-content-name-mismatch": { enabled: true },
  };
  return runAxe(page, { rules });
}

/** In light and dark, as wide as a phone and as a desktop: no barrier, and nothing that is wider. */
export async function assertFitsAllLooks(page: Page, place: string): Promise<void> {
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const root = page.locator("html");
    const overflow = await root.evaluate((html) => html.scrollWidth - html.clientWidth);
    assert.ok(overflow <= 0, `${place} is wider than ${width} pixels`);
    await page.emulateMedia({ colorScheme: "dark" });
    const runOnly = { type: "rule", values: colourRules } as const;
    assert.deepEqual(await runAxe(page, { runOnly }), [], `${place}, dark, ${width} pixels`);
    await page.emulateMedia({ colorScheme: "light" });
    assert.deepEqual(await findBarriers(page), [], `${place}, light, ${width} pixels`);
  }
}

async function runAxe(page: Page, options: RunOptions): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  const asked = JSON.stringify({ resultTypes: ["violations"], ...options });
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${asked})`);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** Asserts that the page broke no rule of its policy, and that none of its scripts failed. */
export function assertNoComplaints({ complaints }: Dashboard): void {
  assert.deepEqual(complaints, []);
}
