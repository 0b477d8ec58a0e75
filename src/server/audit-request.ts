import { z } from "zod";
import type { Caller } from "../auth/authenticate.ts";
import type { RouteName } from "../contract/routes.ts";
import type { ServerContext } from "./server-context.ts";

const named = z.union([
  z.object({ id: z.string() }).transform(({ id }) => id),
  z.object({ sha256: z.string() }).transform(({ sha256 }) => sha256),
  z.object({ project: z.string() }).transform(({ project }) => project),
]);

interface AnsweredRequest {
  readonly action: RouteName;
  readonly params: unknown;
  /** The answer's document, which names what was created. */
  readonly json: unknown;
}

/** Adds a request that has succeeded to the audit. */
export async function auditRequest(
  { records }: Pick<ServerContext, "records">,
  { project, tokenId, tokenName }: Caller,
  { action, params, json }: AnsweredRequest,
): Promise<void> {
  const subject = named.safeParse(json).data ?? named.safeParse(params).data ?? tokenId;
  await records.audit.add(project, { action, tokenId, tokenName, subject });
}
