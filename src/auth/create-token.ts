import { limits } from "../contract/limits.ts";
import type { CreatedToken, TokenRequest } from "../contract/people/token.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";
import type { Records } from "../records/open-records.ts";
import { issueToken } from "./issue-token.ts";

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
