import { type CreatedToken, createdToken, type TokenRequest } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { hashSecret, mintAccessToken, prefixOf } from "./access-token.ts";
import { createOnce } from "./create-once.ts";
import { notFound } from "./not-found.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

type TokenHandlers = Pick<Handlers, "listTokens" | "createToken" | "revokeToken">;

export function tokenHandlers(context: ServerContext): TokenHandlers {
  const { records, now } = context;
  return {
    async listTokens({ caller }) {
      return { status: 200, json: { tokens: await records.tokens.list(caller.project) } };
    },

    async createToken(input) {
      const { created, headers } = await createOnce<CreatedToken>(context, input, {
        schema: createdToken,
        async create(answered) {
          const made = await createToken(records, { ...input.body, project: input.caller.project, now: now() });
          if (answered) await records.idempotency.finish(answered.ref, answered.answer(made));
          return made;
        },
      });
      return { status: 201, json: created, headers: { location: `/v1/tokens/${created.id}`, ...headers } };
    },

    async revokeToken({ caller, params }) {
      if (!(await records.tokens.revoke(caller.project, params.id))) throw notFound("token", params.id);
      return { status: 204 };
    },
  };
}

const dayMs = 86_400_000;

/** Makes a token and gives it away this once: only its hash is kept. */
export async function createToken(
  records: Records,
  { name, scopes, expiresInDays, project, now }: TokenRequest & { project: string; now: Date },
): Promise<CreatedToken> {
  const secret = mintAccessToken();
  const expiresAt = expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * dayMs).toISOString();
  const kept = await records.tokens.create(project, {
    name,
    scopes: [...new Set(scopes)],
    prefix: prefixOf(secret),
    hash: hashSecret(secret),
    expiresAt,
  });
  return { ...kept, token: secret };
}
