import type { Context, Hono } from "hono";
import { endedFlowCookie, flowCookie, readFlow } from "../../auth/session-cookie.ts";
import { beginIssuedSession } from "../../auth/sign-in.ts";
import type { SingleSignOn } from "../../auth/single-sign-on.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { SignInProblem } from "../../contract/people/sign-in-problems.ts";
import { beginCookie, browserVisit } from "./session-handlers.ts";
import { callerGroup } from "../http/remote-address.ts";
import { createConcurrencyLimit } from "../http/concurrency-limit.ts";
import type { ServerContext } from "../http/server-context.ts";

const keyName = "single-sign-on";
/** Sign-ins for which the issuer is being asked at once, of all people and of one address. */
const askedAtOnce = { all: 32, perCaller: 8 };

type Responder = (c: Context, key: Buffer) => Promise<Response>;

/** Leads browsers to the single sign-on and back. */
export function bindSingleSignOn(
  app: Hono,
  context: ServerContext,
  singleSignOn: SingleSignOn,
): void {
  const enter = createConcurrencyLimit(askedAtOnce);
  const bind = (path: string, respond: Responder) =>
    app.get(path, async (c) => {
      try {
        const group = callerGroup(context, c.req.raw, c.env);
        context.quotas.exchanges.take(group);
        using _place = enter(group);
        return await respond(c, await context.records.keys.read(keyName));
      } catch (error) {
        return leadToProblem(context, c, error);
      }
    });
  bind("/auth/sign-in", (c, key) => leadToIssuer(context, c, { singleSignOn, key }));
  bind("/auth/callback", (c, key) => leadBack(context, c, { singleSignOn, key }));
}

interface SignInParts {
  readonly singleSignOn: SingleSignOn;
  /** Seals what the browser keeps. */
  readonly key: Buffer;
}

async function leadToIssuer(
  context: ServerContext,
  c: Context,
  { singleSignOn, key }: SignInParts,
): Promise<Response> {
  const { address, flow } = await singleSignOn.begin();
  const returnTo = ownAddress(context, c.req.raw, c.req.query("return"));
  const cookie = { ...flow, returnTo, key, now: context.now() };
  c.header("set-cookie", flowCookie(context, c.req.raw, cookie));
  return c.redirect(address.href);
}

async function leadBack(
  context: ServerContext,
  c: Context,
  { singleSignOn, key }: SignInParts,
): Promise<Response> {
  const { records, now } = context;
  const request = c.req.raw;
  const flow = readFlow(context, request, key, now());
  if (flow === undefined) return leadToSignIn(context, c, "expired");
  const person = await singleSignOn.finish(new URL(request.url).search, flow);
  const begun = await beginIssuedSession(records, person, browserVisit(context, request));
  c.header("set-cookie", endedFlowCookie(context, request));
  const { "set-cookie": cookie } = beginCookie(context, request, begun);
  c.header("set-cookie", cookie, { append: true });
  return c.redirect(flow.returnTo);
}

/** Longest address to return to, characters: browsers drop a cookie of more than 4,096 bytes. */
const returnLength = 2000;

/**
 * An address of the service's own pages. The whole address is the result: a path alone, such as
 * `//other.example`, could lead elsewhere.
 */
function ownAddress({ publicUrl }: ServerContext, request: Request, given = "/"): string {
  const own = new URL(publicUrl ?? request.url);
  const home = `${own.origin}/`;
  const wanted = URL.parse(given, own.origin)?.href;
  return wanted?.startsWith(home) && wanted.length <= returnLength ? wanted : home;
}

const problemByCode: Readonly<Partial<Record<string, SignInProblem>>> = {
  sign_in_refused: "refused",
  too_many_requests: "busy",
};

function leadToProblem(context: ServerContext, c: Context, error: unknown): Response {
  const code = error instanceof ServiceError ? error.code : "internal_error";
  context.log("warn", "A single sign-on failed", { code, error });
  return leadToSignIn(context, c, problemByCode[code] ?? "unavailable");
}

function leadToSignIn(context: ServerContext, c: Context, problem: SignInProblem): Response {
  c.header("set-cookie", endedFlowCookie(context, c.req.raw));
  return c.redirect(ownAddress(context, c.req.raw, `/sign-in?problem=${problem}`));
}
