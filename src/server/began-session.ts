import { sessionCookie } from "../auth/session-cookie.ts";
import { type BegunSession, sessionSeconds, type Visit } from "../auth/sign-in.ts";
import type { ServerContext } from "./server-context.ts";

/** What is known of the browser that signs somebody in. */
export function browserVisit({ now }: ServerContext, request: Request): Visit {
  return { now: now(), browser: request.headers.get("user-agent") ?? "" };
}

/** The answer with which a session begins. */
export function beganSession(
  context: ServerContext,
  request: Request,
  { session, secret }: BegunSession,
) {
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
  return { "set-cookie": sessionCookie(context, request, { secret, maxAge }) };
}
