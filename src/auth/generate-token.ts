import type { NewToken } from "../records/people/token-records.ts";
import { generateAccessToken, hashSecret, tokenPrefix } from "./access-token.ts";

export type TokenFields = Omit<NewToken, "prefix" | "hash">;

/** A new secret, and the token to store for it. */
export function generateToken(fields: TokenFields): { secret: string; newToken: NewToken } {
  const secret = generateAccessToken();
  return {
    secret,
    newToken: { ...fields, prefix: tokenPrefix(secret), hash: hashSecret(secret) },
  };
}
