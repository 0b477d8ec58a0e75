import type { Caller } from "../../auth/authenticate.ts";
import { requireSameOrigin, sessionCookie } from "../../auth/session-cookie.ts";
import { beginSession, type BegunSession, sessionSeconds, type Visit } from "../../auth/sign-in.ts";
import { may } from "../../contract/people/may.ts";
import { type Action, permissionTable } from "../../contract/people/permissions.ts";
import { findRole, isInstallation } from "../../contract/people/role.ts";
import type { Records } from "../../records/open-records.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { ServerContext } from "../http/server-context.ts";

type SessionHandlers = Pick<
  RouteHandlers,
  | "getSelf"
  | "getSignInMethods"
  | "signIn"
  | "listSessions"
  | "switchProject"
  | "signOut"
  | "signOutEverywhere"
>;

export const sessionHandlers: SessionHandlers = {
  async getSelf({ now, records }, { caller }) {
    const { project, name, tokenId, personId, session, role, scopes, expiresAt } = caller;
    // First: pages read what they show at the same time.
    const lastChange = await records.changeLog.last();
    const self = {
      project,
      name,
      tokenId,
      personId,
      sessionId: session?.id ?? null,
      role,
      projects: await listOwnProjects(records, caller),
      scopes: [...scopes],
      actions: actionNames.filter((action) => may(caller, action)),
      expiresAt,
      now: now().toISOString(),
      lastChange,
    };
    return { status: 200, json: self };
  },

  async getSignInMethods({ singleSignOn }) {
    const host = singleSignOn ? new URL(singleSignOn.issuer).host : null;
    return { status: 200, json: { singleSignOn: host } };
  },

  async signIn(context, { body, request }) {
    // A stranger's page must not sign somebody in as another person.
    requireSameOrigin(request);
    const visit = browserVisit(context, request);
    const begun = await beginSession(context.records, body.secret, visit);
    return beganSession(context, request, begun);
  },

  async listSessions({ records }, { caller: { session } }) {
    const sessions = session ? await records.sessions.list(session.personId) : [];
    return { status: 200, json: { sessions } };
  },

  async switchProject({ records }, { caller, body: { project }, audit }) {
    const { session, memberships } = caller;
    const isThere = session !== null && (await records.projects.has(project));
    if (!isThere || findRole(memberships, project) === undefined) {
      throw notFoundError("project of the person", project);
    }
    await records.sessions.switchProject(session.id, project, audit);
    return { status: 200, json: { ...session, project } };
  },

  async signOut(context, { caller, audit, request }) {
    if (caller.session) await context.records.sessions.end(caller.session.id, audit);
    return endCookie(context, caller, request);
  },

  async signOutEverywhere(context, { caller, audit, request }) {
    if (caller.session) await context.records.sessions.endAll(caller.session.personId, audit);
    return endCookie(context, caller, request);
  },
};

const actionNames = Object.keys(permissionTable) as Action[];

/** Administrators of the installation have a role in every project. */
async function listOwnProjects({ projects }: Records, { memberships }: Caller) {
  const names = memberships.some(isInstallation)
    ? (await projects.list()).map(({ name }) => name)
    : [...new Set(memberships.map(({ project }) => project))].toSorted();
  return names.flatMap((name) => {
    const role = findRole(memberships, name);
    return role === undefined ? [] : { name, role };
  });
}

/** The answer to a sign-out; access tokens have no cookie that ends. */
function endCookie(context: ServerContext, { session }: Caller, request: Request) {
  const cookie = sessionCookie(context, request, "", 0);
  return { status: 204, headers: session ? { "set-cookie": cookie } : {} } as const;
}

/** What is known of the browser that signs somebody in. */
export function browserVisit({ now }: ServerContext, request: Request): Visit {
  return { now: now(), browser: request.headers.get("user-agent") ?? "" };
}

/** The answer with which a session begins. */
function beganSession(context: ServerContext, request: Request, { session, secret }: BegunSession) {
  return {
    status: 201,
    json: session,
    headers: beginCookie(context, request, { session, secret }),
  } as const;
}

/** The header that begins a session in a browser. */
export function beginCookie(
  context: ServerContext,
  request: Request,
  { session, secret }: BegunSession,
) {
  const maxAge = sessionSeconds(session.method);
  return { "set-cookie": sessionCookie(context, request, secret, maxAge) };
}
