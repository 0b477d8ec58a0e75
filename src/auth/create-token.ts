import { generateToken, type TokenFields } from "./access-token.ts";
import { limits } from "../contract/limits.ts";
import type { CreatedToken, Token, TokenRequest } from "../contract/people/token.ts";
import type { Records } from "../records/open-records.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";

const dayMs = 86_400_000;

interface NewTokenRequest extends Omit<TokenRequest, "expiresInDays"> {
  readonly expiresInDays?: number | null;
  readonly project: string;
  /** Whose token it is; without it no person's. */
  readonly personId?: string | null;
  readonly now: Date;
  readonly audit?: AuditedChange | undefined;
}

/** Creates the token of a request. */
export async function createToken(
  records: Pick<Records, "tokens">,
  { name, scopes, expiresInDays = limits.tokenDays, now, ...owner }: NewTokenRequest,
): Promise<CreatedToken> {
  const expiresAt =
    expiresInDays === null ? null : new Date(now.getTime() + expiresInDays * dayMs).toISOString();
  const uniqueScopes = [...new Set(scopes)];
  const fields = { name, scopes: uniqueScopes, expiresAt, policy: null };
  const { project, personId = null, audit } = owner;
  return issueToken(records, { ...fields, project, personId, audit });
}

interface IssuedToken extends TokenFields {
  readonly project: string;
  readonly audit?: AuditedChange | undefined;
}

/** Generates a token and stores its hash; the secret exists only in the result. */
export async function issueToken(
  { tokens }: Pick<Records, "tokens">,
  { project, audit, ...fields }: IssuedToken,
): Promise<CreatedToken> {
  const { secret, newToken } = generateToken(fields);
  return { ...(await tokens.create(project, newToken, audit)), token: secret };
}

const hourMs = 3_600_000;

interface Rotation {
  readonly project: string;
  readonly token: Token;
  /** Whose the new token is; null for nobody's. */
  readonly personId: string | null;
  readonly now: Date;
  readonly audit?: AuditedChange | undefined;
}

/**
 * Creates a token with the name, scopes and lifetime of another one, which stays valid for a while.
 */
export async function rotateToken(
  { tokens }: Pick<Records, "tokens">,
  { project, token, personId, now, audit }: Rotation,
): Promise<CreatedToken> {
  const { id, name, scopes, createdAt, expiresAt, policy } = token;
  const lifetimeMs = expiresAt === null ? null : Date.parse(expiresAt) - Date.parse(createdAt);
  const { secret, newToken } = generateToken({
    name,
    scopes,
    policy,
    personId,
    expiresAt: lifetimeMs === null ? null : new Date(now.getTime() + lifetimeMs).toISOString(),
  });
  const endsAt = new Date(now.getTime() + limits.rotationHours * hourMs);
  const created = await tokens.replace(newToken, { project, id, endsAt }, audit);
  return { ...created, token: secret };
}
