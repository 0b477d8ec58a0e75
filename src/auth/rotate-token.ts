import { limits } from "../contract/limits.ts";
import type { CreatedToken, Token } from "../contract/people/token.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";
import type { Records } from "../records/open-records.ts";
import { generateToken } from "./generate-token.ts";

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
