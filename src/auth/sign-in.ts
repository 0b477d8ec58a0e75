import { randomBytes } from "node:crypto";
import { limits } from "../contract/limits.ts";
import { ServiceError } from "../contract/errors.ts";
import { defaultProject } from "../contract/project.ts";
import type { Session } from "../contract/session.ts";
import type { Records } from "../records/open-records.ts";
import { hashSecret } from "./access-token.ts";

const minuteMs = 60_000;
const secretBytes = 32;
const maxBrowserLength = 200;

/** Seconds for which a person stays signed in. */
export const sessionSeconds = limits.sessionDays * 86_400;

const administrator = {
  project: defaultProject,
  user: "administrator",
  scopes: ["admin" as const],
};

/**
 * Creates a link that signs the administrator in once.
 * @returns its secret, of which the service stores the hash alone
 */
export async function createSignInLink(
  { sessions }: Pick<Records, "sessions">,
  { now, by }: { readonly now: Date; readonly by: string },
): Promise<string> {
  const secret = createSecret();
  const expiresAt = new Date(now.getTime() + limits.signInLinkMinutes * minuteMs).toISOString();
  const link = { ...administrator, hash: hashSecret(secret), expiresAt };
  await sessions.createLink(link, linkAudit(by));
  return secret;
}

/** Has a given secret sign the administrator in once, for as long as nobody has signed in. */
export async function offerSignIn(
  { sessions }: Pick<Records, "sessions">,
  { secret, now }: { readonly secret: string; readonly now: Date },
): Promise<void> {
  const expiresAt = new Date(now.getTime() + limits.firstSignInDays * 1440 * minuteMs);
  const link = { ...administrator, hash: hashSecret(secret), expiresAt: expiresAt.toISOString() };
  await sessions.offerFirstLink(link, linkAudit("first sign-in"));
}

function linkAudit(by: string) {
  return { project: defaultProject, action: "createSignInLink", tokenId: null, tokenName: by };
}

interface BegunSession {
  readonly session: Session;
  readonly secret: string;
}

/**
 * Begins a session by a link's secret, with a new secret of its own.
 * @throws ServiceError sign_in_refused
 */
export async function beginSession(
  { sessions }: Pick<Records, "sessions">,
  linkSecret: string,
  { now, browser }: { readonly now: Date; readonly browser: string },
): Promise<BegunSession> {
  const secret = createSecret();
  const session = await sessions.begin(hashSecret(linkSecret), {
    hash: hashSecret(secret),
    browser: browser.slice(0, maxBrowserLength),
    expiresAt: new Date(now.getTime() + sessionSeconds * 1000).toISOString(),
  });
  if (session !== undefined) return { session, secret };
  throw new ServiceError("sign_in_refused", "The sign-in link was used before or has expired");
}

/** 256 random bits. */
function createSecret(): string {
  return randomBytes(secretBytes).toString("base64url");
}
