import { createHash } from "node:crypto";
import type { z } from "zod";
import type { Caller } from "../../auth/authenticate.ts";
import { seal, unseal } from "../../auth/sealed-text.ts";
import type { Records } from "../../records/open-records.ts";
import {
  AnsweredMeanwhile,
  type IdempotentRequest,
} from "../../records/people/idempotency-records.ts";

interface CreationInput {
  readonly caller: Caller;
  readonly request: Request;
  readonly headers: { readonly "idempotency-key"?: string | undefined };
  readonly body: unknown;
}

interface Creation<T> {
  readonly created: T;
  readonly headers: { readonly "idempotency-replayed"?: "true" };
}

/**
 * Creates something once for each Idempotency-Key: later requests get what the first created, also
 * where they come before it is answered.
 * @throws ServiceError idempotency_key_reused, and what `create` throws
 */
export async function createOnce<T>(
  { idempotency }: Records,
  input: CreationInput,
  schema: z.ZodType<T>,
  create: (request: IdempotentRequest | undefined) => Promise<T>,
): Promise<Creation<T>> {
  const request = readIdempotency(input);
  const replay = (answer: string): Creation<T> => {
    const created = schema.parse(JSON.parse(answer));
    return { created, headers: { "idempotency-replayed": "true" } };
  };
  const earlier = request && (await idempotency.findAnswer(request));
  if (earlier !== undefined) return replay(earlier);
  try {
    return { created: await create(request), headers: {} };
  } catch (error) {
    if (error instanceof AnsweredMeanwhile) return replay(error.answer);
    throw error;
  }
}

/** What records keep of a request's Idempotency-Key; undefined for a request without one. */
function readIdempotency({
  caller: { project, id: tokenId, secret },
  request,
  headers: { "idempotency-key": key },
  body,
}: CreationInput): IdempotentRequest | undefined {
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
