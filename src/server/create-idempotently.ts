import { createHash } from "node:crypto";
import type { z } from "zod";
import type { IdempotentAnswer, IdempotencyRef } from "../records/people/record-creation.ts";
import type { Caller } from "../auth/authenticate.ts";
import { seal, unseal } from "../auth/sealed-text.ts";
import type { ServerContext } from "./server-context.ts";

interface IdempotentRequest {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: unknown;
}

interface Creation<T> {
  /** Of what is created, as the response contains it. */
  readonly schema: z.ZodType<T>;
  readonly create: (answered: IdempotentAnswer<T> | undefined) => Promise<T>;
}

export interface Created<T> {
  readonly created: T;
  /** Whether an earlier request with the same Idempotency-Key created it. */
  readonly replayed: boolean;
  readonly headers: { readonly "idempotency-replayed"?: "true" };
}

/**
 * Creates what a request asks for, once for each Idempotency-Key. The response is stored sealed
 * with the caller's secret, since it can contain one that the service must not know afterwards.
 */
export async function createIdempotently<T>(
  { records }: ServerContext,
  { caller, request, headers, body }: IdempotentRequest,
  { schema, create }: Creation<T>,
): Promise<Created<T>> {
  const key = headers["idempotency-key"];
  if (key === undefined) return { created: await create(undefined), replayed: false, headers: {} };
  const ref: IdempotencyRef = { project: caller.project, tokenId: caller.id, key };
  const stored = await records.idempotency.begin(ref, requestHash(request, body));
  if (stored !== undefined) {
    const created = schema.parse(JSON.parse(unseal(stored, caller.secret)));
    return { created, replayed: true, headers: { "idempotency-replayed": "true" } };
  }
  const buildAnswer = (created: T) => seal(JSON.stringify(created), caller.secret);
  try {
    return { created: await create({ ref, buildAnswer }), replayed: false, headers: {} };
  } catch (error) {
    // Where that fails too, the end of the request frees its key.
    await records.idempotency.abandon(ref).catch(() => {});
    throw error;
  } finally {
    records.idempotency.end(ref);
  }
}

function requestHash(request: Request, body: unknown): string {
  const text = [request.method, new URL(request.url).pathname, JSON.stringify(body)].join("\n");
  return createHash("sha256").update(text).digest("hex");
}
