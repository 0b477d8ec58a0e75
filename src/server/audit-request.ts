import { z } from "zod";
import type { Caller } from "../auth/authenticate.ts";
import type { RouteName } from "../contract/routes.ts";
import type { ServerContext } from "./server-context.ts";

const named = z.union([
  z.object({ id: z.string() }).transform(({ id }) => id),
  z.object({ sha256: z.string() }).transform(({ sha256 }) => sha256),
  z.object({ project: z.string() }).transform(({ project }) => project),
]);

/** A document that belongs to a project, such as a token. */
const owned = z.object({ project: z.string() });

interface AnsweredRequest {
  readonly action: RouteName;
  readonly params: unknown;
  /** The answer's document, which names what was created. */
  readonly json: unknown;
}

/**
 * Adds a request that has succeeded to the audit: the caller's, and that of the project in which it
 * created something.
 */
export async function auditRequest(
  { records }: Pick<ServerContext, "records">,
  { project, tokenId, tokenName }: Caller,
  { action, params, json }: AnsweredRequest,
): Promise<void> {
  const subject = named.safeParse(json).data ?? named.safeParse(params).data ?? tokenId;
  const projects = new Set([project, owned.safeParse(json).data?.project ?? project]);
  for (const each of projects) {
    await records.audit.add(each, { action, tokenId, tokenName, subject });
  }
}
