import { type Caller, describeTokenEnd } from "../../auth/authenticate.ts";
import { checkClaims } from "../../auth/parse-claims.ts";
import { createToken, rotateToken } from "../../auth/create-token.ts";
import { ServiceError } from "../../contract/errors.ts";
import { may, requirePermission } from "../../contract/people/may.ts";
import { restrictScopes } from "../../contract/people/role.ts";
import { createdToken, type Scope, type Token } from "../../contract/people/token.ts";
import { createOnce } from "./idempotency.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

type TokenHandlers = Pick<
  RouteHandlers,
  | "listTokens"
  | "createToken"
  | "exchangeToken"
  | "checkTrustPolicy"
  | "getOwnToken"
  | "revokeOwnToken"
  | "rotateToken"
  | "revokeToken"
>;

export const tokenHandlers: TokenHandlers = {
  async listTokens({ records }, { caller: { project, scopes, personId } }) {
    const owner = scopes.includes("admin") ? undefined : personId;
    return { status: 200, json: { tokens: await records.tokens.list(project, owner) } };
  },

  async createToken(context, input) {
    const { records, now } = context;
    const { personId } = input.caller;
    const project = await requireProject(context, input.caller, input.body.project);
    requireOwnScopes(input.caller, input.body.scopes);
    const fields = { ...input.body, project, personId, now: now(), audit: input.audit };
    const { created, headers } = await createOnce(records, input, createdToken, (idempotency) =>
      createToken(records, { ...fields, idempotency }),
    );
    const location = `/v1/tokens/${created.id}`;
    return { status: 201, json: created, headers: { location, ...headers } };
  },

  async exchangeToken({ exchangeToken }, { body }) {
    if (exchangeToken) return { status: 200, json: await exchangeToken(body.token) };
    throw withoutTrustError();
  },

  async checkTrustPolicy({ trust }, { body: { claims } }) {
    if (trust) return { status: 200, json: checkClaims(trust, claims) };
    throw withoutTrustError();
  },

  async getOwnToken({ records }, { caller }) {
    const own = await records.tokens.find(caller.project, caller.id);
    if (!own) throw notFoundError("token", caller.id);
    return { status: 200, json: own };
  },

  async revokeOwnToken({ records }, { caller, audit }) {
    const isRevoked = await records.tokens.revoke(caller.project, caller.id, audit);
    if (!isRevoked) throw notFoundError("token", caller.id);
    return { status: 204 };
  },

  async rotateToken({ records, now }, { caller, params, audit }) {
    const { project } = caller;
    const token = await findOwnToken(records, caller, params.id);
    // What an identity token was exchanged for lives no longer than its trust policy says.
    const isLasting = token?.policy === null && describeTokenEnd(token, now()) === undefined;
    if (!isLasting) throw notFoundError("token to replace", params.id);
    requireOwnScopes(caller, token.scopes);
    // Those who learn the new secret lose it together with the membership.
    const personId = caller.personId ?? token.person?.id ?? null;
    const created = await rotateToken(records, { project, token, personId, now: now(), audit });
    return { status: 201, json: created, headers: { location: `/v1/tokens/${created.id}` } };
  },

  async revokeToken({ records }, { caller, params, audit }) {
    const token = await findOwnToken(records, caller, params.id);
    if (token === undefined) throw notFoundError("token", params.id);
    await records.tokens.revoke(caller.project, token.id, audit);
    return { status: 204 };
  },
};

function withoutTrustError(): ServiceError {
  const message = "This service has no trust policy for identity tokens";
  return new ServiceError("identity_token_refused", message);
}

/** A token that the caller may manage; undefined if there is none. */
async function findOwnToken(
  { tokens }: ServerContext["records"],
  caller: Caller,
  id: string,
): Promise<Token | undefined> {
  const token = await tokens.find(caller.project, id);
  const owner = { project: caller.project, personId: token?.person?.id ?? null, origin: null };
  return may(caller, "manageTokens", owner) ? token : undefined;
}

/** @throws ServiceError missing_scope */
function requireOwnScopes({ scopes: own }: Caller, scopes: readonly Scope[]): void {
  const allowed = restrictScopes(scopes, own);
  const beyond = scopes.find((each) => !allowed.includes(each));
  if (beyond === undefined) return;
  const message = `A token can have at most your own scopes, without "${beyond}"`;
  throw new ServiceError("missing_scope", message);
}

/** @throws ServiceError missing_scope, not_found if there is no such project */
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
