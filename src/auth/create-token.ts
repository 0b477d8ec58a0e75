import { generateToken } from "./access-token.ts";
import { limits } from "../contract/limits.ts";
import type { CreatedToken, Token, TokenRequest } from "../contract/people/token.ts";
import type { Records } from "../records/open-records.ts";
import type { AuditedChange } from "../records/people/audit-records.ts";
import type { CreatingRequest } from "../records/people/idempotency-records.ts";

const dayMs = 86_400_000;

/** Creates the token of a request. The secret exists only in the result. */
export async function createToken(
  { tokens }: Pick<Records, "tokens">,
  {
    project,
    name,
    scopes,
    expiresInDays = limits.tokenDays,
    personId = null,
    now,
    ...creating
  }: Omit<TokenRequest, "expiresInDays"> &
    CreatingRequest & {
      readonly expiresInDays?: number | null;
      readonly project: string;
      /** Whose token it is; without it no person's. */
      readonly personId?: string | null;
      readonly now: Date;
    },
): Promise<CreatedToken> {
  const expiresAt =
    expiresInDays === null ? null : new Date(now.getTime() + expiresInDays * dayMs).toISOString();
  const fields = { name, scopes: [...new Set(scopes)], expiresAt, policy: null, personId };
  return tokens.create(project, generateToken(fields), creating);
}

const hourMs = 3_600_000;

/**
 * Creates a token with the name, scopes and lifetime of another one, which stays valid for a while.
 * @throws ServiceError token_replaced
 */
export async function rotateToken(
  { tokens }: Pick<Records, "tokens">,
  {
    project,
    token: { id, name, scopes, createdAt, expiresAt, policy },
    personId,
    now,
    audit,
  }: {
    readonly project: string;
    readonly token: Token;
    /** Whose the new token is; null for nobody's. */
    readonly personId: string | null;
    readonly now: Date;
    readonly audit?: AuditedChange | undefined;
  },
): Promise<CreatedToken> {
  const lifetimeMs = expiresAt === null ? null : Date.parse(expiresAt) - Date.parse(createdAt);
  const newToken = generateToken({
    name,
    scopes,
    policy,
    personId,
    expiresAt: lifetimeMs === null ? null : new Date(now.getTime() + lifetimeMs).toISOString(),
  });
  const latest = new Date(now.getTime() + limits.rotationHours * hourMs).toISOString();
  const endsAt = expiresAt !== null && expiresAt < latest ? expiresAt : latest;
  return tokens.replace(newToken, { project, id, endsAt }, audit);
}
