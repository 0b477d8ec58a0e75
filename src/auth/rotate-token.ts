import { limits } from "../contract/limits.ts";
import type { CreatedToken, Token } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { issueToken } from "./issue-token.ts";

const hourMs = 3_600_000;

interface Rotation {
  readonly project: string;
  readonly token: Token;
  readonly now: Date;
}

/**
 * Creates a token with the name, scopes and lifetime of another one, which stays valid for a while.
 */
export async function rotateToken(
  records: Pick<Records, "tokens">,
  { project, token, now }: Rotation,
): Promise<CreatedToken> {
  const { id, name, scopes, createdAt, expiresAt, policy } = token;
  const lifetimeMs = expiresAt === null ? null : Date.parse(expiresAt) - Date.parse(createdAt);
  const replaced = await issueToken(records, {
    name,
    scopes,
    policy,
    project,
    expiresAt: lifetimeMs === null ? null : new Date(now.getTime() + lifetimeMs).toISOString(),
  });
  const until = new Date(now.getTime() + limits.rotationHours * hourMs);
  await records.tokens.expireAt(project, id, until);
  return replaced;
}
