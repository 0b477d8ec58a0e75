import type { CreatedToken } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import type { NewToken } from "../records/token-records.ts";
import { generateAccessToken, hashSecret, tokenPrefix } from "./access-token.ts";

/** Generates a token and stores its hash; the secret exists only in the result. */
export async function issueToken(
  { tokens }: Pick<Records, "tokens">,
  { project, ...fields }: Omit<NewToken, "prefix" | "hash"> & { readonly project: string },
): Promise<CreatedToken> {
  const secret = generateAccessToken();
  const stored = await tokens.create(project, {
    ...fields,
    prefix: tokenPrefix(secret),
    hash: hashSecret(secret),
  });
  return { ...stored, token: secret };
}
