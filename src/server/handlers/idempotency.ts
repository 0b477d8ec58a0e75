import { createHash } from "node:crypto";
import type { z } from "zod";
import type { Caller } from "../../auth/authenticate.ts";
import { seal, unseal } from "../../auth/sealed-text.ts";
import type { Records } from "../../records/open-records.ts";
import type { IdempotentRequest } from "../../records/people/idempotency-records.ts";

/** What records keep of a request's Idempotency-Key; undefined for a request without one. */
export function readIdempotency({
  caller: { project, id: tokenId, secret },
  request,
  headers: { "idempotency-key": key },
  body,
}: {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: unknown;
}): IdempotentRequest | undefined {
  if (key === undefined) return undefined;
  const text = [request.method, new URL(request.url).pathname, JSON.stringify(body)].join("\n");
  return {
    project,
    tokenId,
    key,
    hash: createHash("sha256").update(text).digest("hex"),
    seal: (answer) => seal(answer, secret),
    unseal: (sealed) => unseal(sealed, secret),
  };
}

/** What an earlier request with the same Idempotency-Key created. */
export async function findCreated<T>(
  { idempotency }: Records,
  request: IdempotentRequest | undefined,
  schema: z.ZodType<T>,
): Promise<T | undefined> {
  const answer = request && (await idempotency.findAnswer(request));
  return answer === undefined ? undefined : schema.parse(JSON.parse(answer));
}

export const replayedHeaders = { "idempotency-replayed": "true" } as const;
