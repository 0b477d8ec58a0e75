import type { CreatedToken } from "../../contract/people/token.ts";

/** A curl line that works at once with a token. */
export function tokenCommand({ token }: Pick<CreatedToken, "token">, address: string): string {
  return `curl --fail-with-body -H "Authorization: Bearer ${token}" ${address}/tokens/self`;
}
