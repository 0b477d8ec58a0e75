import { ServiceError } from "../contract/errors.ts";
import { type CreatedToken, createdToken } from "../contract/token.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { createTokenExchange } from "../auth/token-exchange.ts";
import { createToken } from "../auth/create-token.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

type TokenHandlers = Pick<
  RouteHandlers,
  "listTokens" | "createToken" | "exchangeToken" | "revokeToken"
>;

export function tokenHandlers(context: ServerContext): TokenHandlers {
  const { records, now, trust } = context;
  const exchange = trust && createTokenExchange(context, trust);
  return {
    async listTokens({ caller }) {
      return { status: 200, json: { tokens: await records.tokens.list(caller.project) } };
    },

    async createToken(input) {
      const { created, headers } = await createIdempotently<CreatedToken>(context, input, {
        schema: createdToken,
        async create(answered) {
          const made = await createToken(records, {
            ...input.body,
            project: input.caller.project,
            now: now(),
          });
          if (answered) await records.idempotency.finish(answered.ref, answered.buildAnswer(made));
          return made;
        },
      });
      return {
        status: 201,
        json: created,
        headers: { location: `/v1/tokens/${created.id}`, ...headers },
      };
    },

    async exchangeToken({ body }) {
      if (exchange) return { status: 200, json: await exchange(body.token) };
      throw new ServiceError(
        "identity_token_refused",
        "This service has no trust policy for identity tokens",
      );
    },

    async revokeToken({ caller, params }) {
      if (!(await records.tokens.revoke(caller.project, params.id)))
        throw notFoundError("token", params.id);
      return { status: 204 };
    },
  };
}
