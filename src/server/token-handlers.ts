import type { Caller } from "../auth/authenticate.ts";
import { createToken } from "../auth/create-token.ts";
import { requirePermission } from "../auth/require-permission.ts";
import { ServiceError } from "../contract/errors.ts";
import { type CreatedToken, createdToken } from "../contract/token.ts";
import { createIdempotently } from "./create-idempotently.ts";
import { notFoundError } from "./not-found-error.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

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
    const project = await requireProject(context, input.caller, input.body.project);
    const { created, headers } = await createIdempotently<CreatedToken>(context, input, {
      schema: createdToken,
      async create(answered) {
        const fields = { ...input.body, project, now: now() };
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

/** @throws ServiceError missing_scope, not_found where there is no such project */
async function requireProject(
  { records }: ServerContext,
  caller: Caller,
  name = caller.project,
): Promise<string> {
  if (name === caller.project) return name;
  requirePermission(caller, "manageProjects");
  if (await records.projects.has(name)) return name;
  throw notFoundError("project", name);
}
