import { createToken } from "../auth/create-token.ts";
import { defaultProject } from "../contract/project.ts";
import type { Records } from "../records/open-records.ts";

/** A token with every scope; undefined where the service has a token already. */
export async function createFirstToken(
  records: Pick<Records, "tokens">,
  now: Date,
): Promise<string | undefined> {
  if ((await records.tokens.list(defaultProject)).length > 0) return undefined;
  const { token } = await createToken(records, {
    name: "first",
    scopes: ["admin"],
    project: defaultProject,
    now,
  });
  return token;
}
