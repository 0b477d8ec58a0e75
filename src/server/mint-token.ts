import type { CreatedToken } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import type { NewToken } from "../records/tokens.ts";
import { hashSecret, mintAccessToken, prefixOf } from "./access-token.ts";

/** Makes a token and gives it away this once: only its hash is kept. */
export async function mintToken(
  { tokens }: Pick<Records, "tokens">,
  { project, ...fields }: Omit<NewToken, "prefix" | "hash"> & { readonly project: string },
): Promise<CreatedToken> {
  const secret = mintAccessToken();
  const kept = await tokens.create(project, { ...fields, prefix: prefixOf(secret), hash: hashSecret(secret) });
  return { ...kept, token: secret };
}
