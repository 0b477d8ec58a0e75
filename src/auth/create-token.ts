import type { CreatedToken, TokenRequest } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { issueToken } from "./issue-token.ts";

const dayMs = 86_400_000;

/** Creates the token of a request. */
export async function createToken(
  records: Pick<Records, "tokens">,
  { name, scopes, expiresInDays, project, now }: TokenRequest & { project: string; now: Date },
): Promise<CreatedToken> {
  const expiresAt =
    expiresInDays === undefined
      ? null
      : new Date(now.getTime() + expiresInDays * dayMs).toISOString();
  const uniqueScopes = [...new Set(scopes)];
  return issueToken(records, { name, scopes: uniqueScopes, expiresAt, policy: null, project });
}
