import type { CreatedToken } from "../contract/people/token.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";
import type { Records } from "../records/open-records.ts";
import { generateToken, type TokenFields } from "./generate-token.ts";

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
