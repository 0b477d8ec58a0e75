import type { CreatedToken, TokenRequest } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { issueToken } from "./issue-token.ts";

const dayMs = 86_400_000;

/** Makes the token that was asked for. */
export async function createToken(
  records: Pick<Records, "tokens">,
  { name, scopes, expiresInDays, project, now }: TokenRequest & { project: string; now: Date },
): Promise<CreatedToken> {
  const expiresAt =
    expiresInDays === undefined
      ? null
      : new Date(now.getTime() + expiresInDays * dayMs).toISOString();
  return issueToken(records, {
    name,
    scopes: [...new Set(scopes)],
    expiresAt,
    policy: null,
    project,
  });
}
