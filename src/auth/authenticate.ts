import { ServiceError } from "../contract/errors.ts";
import type { Principal } from "../contract/principal.ts";
import type { Session } from "../contract/session.ts";
import type { Token } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { hashSecret, isWellFormedToken } from "./access-token.ts";
import { type CookieSettings, readSessionSecret } from "./session-cookie.ts";

/** Who sent a request, by its access token or its session. */
export interface Caller extends Principal {
  /** Of the token or the session. */
  readonly id: string;
  /** Of the token, or of the person who is signed in. */
  readonly name: string;
  /** Null for an access token. */
  readonly session: Session | null;
  /** The token or the session's secret itself, which the service does not store. */
  readonly secret: string;
}

interface AuthenticationContext extends CookieSettings {
  readonly records: Pick<Records, "tokens" | "sessions">;
  readonly now: () => Date;
}

/**
 * A request has an access token or a session's cookie.
 * @throws ServiceError unauthorized, cross_site_request
 */
export async function authenticate(
  context: AuthenticationContext,
  request: Request,
): Promise<Caller> {
  const secret = readSessionSecret(context, request);
  if (secret === undefined) return authenticateToken(context, readBearerToken(request));
  if (!request.headers.has("authorization")) return authenticateSession(context, secret);
  throw new ServiceError("unauthorized", "The request has both an access token and a session");
}

async function authenticateToken(
  { records, now }: AuthenticationContext,
  secret: string,
): Promise<Caller> {
  const stored = isWellFormedToken(secret)
    ? await records.tokens.findByHash(hashSecret(secret))
    : undefined;
  if (stored === undefined) throw invalidTokenError("The access token is not known");
  const { token, project, workflow } = stored;
  requireUsableToken(token, now());
  records.tokens.touch(token.id);
  const { id, name, scopes, expiresAt, policy } = token;
  const principal = { project, tokenId: id, scopes, expiresAt, policy, workflow };
  return { ...principal, id, name, session: null, secret };
}

async function authenticateSession(
  { records, now }: AuthenticationContext,
  secret: string,
): Promise<Caller> {
  const session = await records.sessions.findByHash(hashSecret(secret));
  if (session === undefined || Date.parse(session.expiresAt) <= now().getTime()) {
    throw new ServiceError("unauthorized", "The session has ended", { headers: bearerChallenge });
  }
  records.sessions.touch(session.id);
  const { id, project, user: name, scopes, expiresAt } = session;
  const principal = { project, tokenId: null, scopes, expiresAt, policy: null, workflow: null };
  return { ...principal, id, name, session, secret };
}

const bearerChallenge = { "www-authenticate": "Bearer" };

/**
 * The secret in the Authorization header.
 * @throws ServiceError unauthorized
 */
export function readBearerToken(request: Request): string {
  const [scheme = "", secret] = (request.headers.get("authorization") ?? "").split(" ");
  if (scheme.toLowerCase() === "bearer" && secret) return secret;
  const message = "The request needs an Authorization header with a bearer token";
  throw new ServiceError("unauthorized", message, { headers: bearerChallenge });
}

export function invalidTokenError(message: string): ServiceError {
  return new ServiceError("unauthorized", message, {
    headers: { "www-authenticate": 'Bearer error="invalid_token"' },
  });
}

function requireUsableToken(token: Token, now: Date): void {
  const end = describeTokenEnd(token, now);
  if (end !== undefined) throw invalidTokenError(`The access token ${end}`);
}

/** How the token's validity ended; undefined where it is valid. */
export function describeTokenEnd({ revokedAt, expiresAt }: Token, now: Date): string | undefined {
  if (revokedAt !== null) return `was revoked at ${revokedAt}`;
  const hasExpired = expiresAt !== null && Date.parse(expiresAt) <= now.getTime();
  return hasExpired ? `expired at ${expiresAt}` : undefined;
}
