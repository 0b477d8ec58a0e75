import { ServiceError } from "../contract/errors.ts";
import { type CreatedToken, createdToken, type TokenRequest } from "../contract/token.ts";
import type { Records } from "../records/open-records.ts";
import { createOnce } from "./create-once.ts";
import { tokenExchange } from "./exchange-token.ts";
import { mintToken } from "./mint-token.ts";
import { notFound } from "./not-found.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

type TokenHandlers = Pick<Handlers, "listTokens" | "createToken" | "exchangeToken" | "revokeToken">;

export function tokenHandlers(context: ServerContext): TokenHandlers {
  const { records, now, trust } = context;
  const exchange = trust && tokenExchange(context, trust);
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

    async exchangeToken({ body }) {
      if (exchange) return { status: 200, json: await exchange(body.token) };
      throw new ServiceError("identity_token_refused", "This service has no trust policy for identity tokens");
    },

    async revokeToken({ caller, params }) {
      if (!(await records.tokens.revoke(caller.project, params.id))) throw notFound("token", params.id);
      return { status: 204 };
    },
  };
}

const dayMs = 86_400_000;

/** Makes the token that was asked for. */
export async function createToken(
  records: Records,
  { name, scopes, expiresInDays, project, now }: TokenRequest & { project: string; now: Date },
): Promise<CreatedToken> {
  const expiresAt = expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * dayMs).toISOString();
  return mintToken(records, { name, scopes: [...new Set(scopes)], expiresAt, policy: null, project });
}
