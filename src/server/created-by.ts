import type { Caller } from "../auth/authenticate.ts";
import type { CreatedBy } from "../contract/created-by.ts";

export function createdByCaller({ tokenId, tokenName }: Caller): NonNullable<CreatedBy> {
  return { tokenId, name: tokenName };
}
