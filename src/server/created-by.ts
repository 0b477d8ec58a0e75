import type { Caller } from "../auth/authenticate.ts";
import type { CreatedBy } from "../contract/jobs/creation.ts";

export function createdByCaller({ tokenId, name }: Caller): NonNullable<CreatedBy> {
  return { tokenId, name };
}
