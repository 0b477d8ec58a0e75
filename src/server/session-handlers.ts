import type { Caller } from "../auth/authenticate.ts";
import { requireSameOrigin, sessionCookie } from "../auth/session-cookie.ts";
import { beginSession, sessionSeconds } from "../auth/sign-in.ts";
import { may } from "../contract/may.ts";
import { type Action, permissionTable } from "../contract/permissions.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

type SessionHandlers = Pick<
  RouteHandlers,
  "getSelf" | "signIn" | "listSessions" | "signOut" | "signOutEverywhere"
>;

export const sessionHandlers: SessionHandlers = {
  async getSelf({ now }, { caller }) {
    const { project, name, tokenId, session, scopes, expiresAt } = caller;
    const self = {
      project,
      name,
      tokenId,
      sessionId: session?.id ?? null,
      scopes: [...scopes],
      actions: actionNames.filter((action) => may(caller, action)),
      expiresAt,
      now: now().toISOString(),
    };
    return { status: 200, json: self };
  },

  async signIn(context, { body, request }) {
    // A stranger's page must not sign somebody in as another person.
    requireSameOrigin(request);
    const browser = request.headers.get("user-agent") ?? "";
    const begun = await beginSession(context.records, body.secret, {
      now: context.now(),
      browser,
    });
    const { session, secret } = begun;
    const cookie = sessionCookie(context, request, { secret, maxAge: sessionSeconds });
    return { status: 201, json: session, headers: { "set-cookie": cookie } };
  },

  async listSessions({ records }, { caller: { session } }) {
    return { status: 200, json: { sessions: session ? await records.sessions.list(session) : [] } };
  },

  async signOut(context, { caller, audit, request }) {
    if (caller.session) await context.records.sessions.end(caller.session.id, audit);
    return endCookie(context, caller, request);
  },

  async signOutEverywhere(context, { caller, audit, request }) {
    if (caller.session) await context.records.sessions.endAll(caller.session, audit);
    return endCookie(context, caller, request);
  },
};

const actionNames = Object.keys(permissionTable) as Action[];

/** The answer to a sign-out; access tokens have no cookie that ends. */
function endCookie(context: ServerContext, { session }: Caller, request: Request) {
  const cookie = sessionCookie(context, request, { secret: "", maxAge: 0 });
  return { status: 204, headers: session ? { "set-cookie": cookie } : {} } as const;
}
