import { ServiceError } from "../contract/errors.ts";
import type { Scope } from "../contract/token.ts";
import type { Token } from "../contract/token.ts";
import { hashSecret, isWellFormedToken } from "./access-token.ts";
import type { Records } from "../records/open-records.ts";

/** Who makes a request. */
export interface Caller {
  readonly project: string;
  readonly tokenId: string;
  readonly scopes: readonly Scope[];
  /** The only repository, `owner/name`, that the caller may have check runs written in; null where it may in all. */
  readonly repository: string | null;
  /** The token itself, which the service does not keep. */
  readonly secret: string;
}

interface AuthenticationContext {
  readonly records: Pick<Records, "tokens">;
  readonly now: () => Date;
}

export async function authenticate(
  { records, now }: AuthenticationContext,
  request: Request,
): Promise<Caller> {
  const secret = readBearerToken(request);
  const found = isWellFormedToken(secret)
    ? await records.tokens.findByHash(hashSecret(secret))
    : undefined;
  if (found === undefined) throw invalidTokenError("The access token is not known");
  const { token, project, repository } = found;
  requireUsableToken(token, now());
  await records.tokens.touch(token.id);
  return { project, tokenId: token.id, scopes: token.scopes, repository, secret };
}

export function requireScope(caller: Caller, scope: Scope): void {
  if (caller.scopes.includes(scope) || caller.scopes.includes("admin")) return;
  throw new ServiceError("missing_scope", `The access token lacks the scope "${scope}"`, {
    headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` },
  });
}

/** The secret in the Authorization header. */
export function readBearerToken(request: Request): string {
  const [scheme = "", secret] = (request.headers.get("authorization") ?? "").split(" ");
  if (scheme.toLowerCase() === "bearer" && secret) return secret;
  throw new ServiceError(
    "unauthorized",
    "The request needs an Authorization header with a bearer token",
    {
      headers: { "www-authenticate": "Bearer" },
    },
  );
}

export function invalidTokenError(message: string): ServiceError {
  return new ServiceError("unauthorized", message, {
    headers: { "www-authenticate": 'Bearer error="invalid_token"' },
  });
}

function requireUsableToken(token: Token, now: Date): void {
  if (token.revokedAt !== null)
    throw invalidTokenError(`The access token was revoked at ${token.revokedAt}`);
  if (token.expiresAt !== null && Date.parse(token.expiresAt) <= now.getTime()) {
    throw invalidTokenError(`The access token expired at ${token.expiresAt}`);
  }
}
