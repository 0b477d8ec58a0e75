import type { Token } from "../../contract/people/token.ts";

export type TokenState = "valid" | "soon" | "expired" | "revoked";

const soonMs = 7 * 86_400_000;

/** Whether a token can be used; `soon` for one that expires within a week. */
export function describeTokenState({ revokedAt, expiresAt }: Token, now: number): TokenState {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null) return "valid";
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) return "expired";
  return left < soonMs ? "soon" : "valid";
}
