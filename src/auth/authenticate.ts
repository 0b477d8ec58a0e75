import { ServiceError } from "../contract/errors.ts";
import type { Principal } from "../contract/principal.ts";
import type { Token } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { hashSecret, isWellFormedToken } from "./access-token.ts";

/** Who sent a request, by its access token. */
export interface Caller extends Principal {
  readonly tokenName: string;
  /** The token itself, which the service does not store. */
  readonly secret: string;
}

interface AuthenticationContext {
  readonly records: Pick<Records, "tokens">;
  readonly now: () => Date;
}

/** @throws ServiceError unauthorized */
export async function authenticate(
  { records, now }: AuthenticationContext,
  request: Request,
): Promise<Caller> {
  const secret = readBearerToken(request);
  const stored = isWellFormedToken(secret)
    ? await records.tokens.findByHash(hashSecret(secret))
    : undefined;
  if (stored === undefined) throw invalidTokenError("The access token is not known");
  const { token, project, workflow } = stored;
  requireUsableToken(token, now());
  records.tokens.touch(token.id);
  const { id: tokenId, name: tokenName, scopes, expiresAt, policy } = token;
  return { project, tokenId, tokenName, scopes, expiresAt, policy, workflow, secret };
}

/**
 * The secret in the Authorization header.
 * @throws ServiceError unauthorized
 */
export function readBearerToken(request: Request): string {
  const [scheme = "", secret] = (request.headers.get("authorization") ?? "").split(" ");
  if (scheme.toLowerCase() === "bearer" && secret) return secret;
  const message = "The request needs an Authorization header with a bearer token";
  throw new ServiceError("unauthorized", message, { headers: { "www-authenticate": "Bearer" } });
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
