import { createToken } from "../auth/create-token.ts";
import { ServiceError } from "../contract/errors.ts";
import { type CreatedToken, createdToken } from "../contract/token.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";

type TokenHandlers = Pick<
  RouteHandlers,
  "listTokens" | "createToken" | "exchangeToken" | "revokeToken"
>;

export const tokenHandlers: TokenHandlers = {
  async listTokens({ records }, { caller }) {
    return { status: 200, json: { tokens: await records.tokens.list(caller.project) } };
  },

  async createToken(context, input) {
    const { records, now } = context;
    const { created, headers } = await createIdempotently<CreatedToken>(context, input, {
      schema: createdToken,
      async create(answered) {
        const fields = { ...input.body, project: input.caller.project, now: now() };
        const token = await createToken(records, fields);
        if (answered) await records.idempotency.finish(answered.ref, answered.buildAnswer(token));
        return token;
      },
    });
    const location = `/v1/tokens/${created.id}`;
    return { status: 201, json: created, headers: { location, ...headers } };
  },

  async exchangeToken({ exchangeToken }, { body }) {
    if (exchangeToken) return { status: 200, json: await exchangeToken(body.token) };
    const message = "This service has no trust policy for identity tokens";
    throw new ServiceError("identity_token_refused", message);
  },

  async revokeToken({ records }, { caller, params }) {
    const isRevoked = await records.tokens.revoke(caller.project, params.id);
    if (!isRevoked) throw notFoundError("token", params.id);
    return { status: 204 };
  },
};
