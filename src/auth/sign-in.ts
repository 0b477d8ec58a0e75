import { randomBytes } from "node:crypto";
import { limits } from "../contract/limits.ts";
import { ServiceError } from "../contract/errors.ts";
import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";
import { defaultProject } from "../contract/project.ts";
import type { Session, SignInMethod } from "../contract/people/session.ts";
import type { Records } from "../records/open-records.ts";
import type { IssuedPerson } from "../records/people/person-access.ts";
import type { NewSession } from "../records/people/session-records.ts";
import { hashSecret } from "./access-token.ts";

const minuteMs = 60_000;
const secretBytes = 32;
const maxBrowserLength = 200;

/** Seconds for which a person stays signed in; groups are those of the sign-in. */
export function sessionSeconds(method: SignInMethod): number {
  const isIssued = method === "single-sign-on";
  return isIssued ? limits.singleSignOnHours * 3600 : limits.sessionDays * 86_400;
}

/**
 * Creates a link that signs the administrator in once.
 * @returns its secret; the service stores only its hash
 */
export async function createSignInLink(
  { sessions }: Pick<Records, "sessions">,
  by: string,
  now: Date,
): Promise<string> {
  const secret = createSecret();
  const expiresAt = new Date(now.getTime() + limits.signInLinkMinutes * minuteMs).toISOString();
  await sessions.createLink({ hash: hashSecret(secret), expiresAt }, linkAudit(by));
  return secret;
}

/** Has a given secret sign the administrator in once, until somebody with a role has signed in. */
export async function offerSignIn(
  { sessions }: Pick<Records, "sessions">,
  secret: string,
  now: Date,
): Promise<void> {
  const expiresAt = new Date(now.getTime() + limits.firstSignInDays * 1440 * minuteMs);
  const link = { hash: hashSecret(secret), expiresAt: expiresAt.toISOString() };
  await sessions.offerFirstLink(link, linkAudit("first sign-in"));
}

function linkAudit(by: string) {
  return { project: defaultProject, action: "createSignInLink", tokenId: null, tokenName: by };
}

export interface BegunSession {
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
  visit: Visit,
): Promise<BegunSession> {
  const { secret, newSession } = generateSession(visit, "link");
  const session = await sessions.begin(hashSecret(linkSecret), newSession);
  if (session !== undefined) return { session, secret };
  throw new ServiceError("sign_in_refused", "The sign-in link was used before or has expired");
}

/** Begins a session of somebody whom the single sign-on has named. */
export async function beginIssuedSession(
  { sessions }: Pick<Records, "sessions">,
  person: IssuedPerson,
  visit: Visit,
): Promise<BegunSession> {
  const { secret, newSession } = generateSession(visit, "single-sign-on");
  return { secret, session: await sessions.beginIssued(person, newSession) };
}

/** Of a browser. */
export interface Visit {
  readonly now: Date;
  /** What the browser calls itself. */
  readonly browser: string;
}

/** A new secret, and the session to store for it. */
function generateSession(
  { now, browser }: Visit,
  method: SignInMethod,
): { secret: string; newSession: NewSession } {
  const secret = createSecret();
  const endMs = now.getTime() + sessionSeconds(method) * 1000;
  const expiresAt = new Date(endMs).toISOString();
  const known = {
    browser: replaceHiddenCharacters(browser.slice(0, maxBrowserLength)),
    method,
    expiresAt,
  };
  return { secret, newSession: { ...known, hash: hashSecret(secret) } };
}

/** 256 random bits. */
function createSecret(): string {
  return randomBytes(secretBytes).toString("base64url");
}
