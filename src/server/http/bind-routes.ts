import type { Readable } from "node:stream";
import type { Hono } from "hono";
import { z } from "zod";
import { releaseAfterAnswer } from "./body-memory.ts";
import { buildResponse, type JsonText } from "./build-response.ts";
import { notFoundError } from "./problem-response.ts";
import { readRequest, type RequestParts } from "./read-request.ts";
import { callerGroup } from "./remote-address.ts";
import { requestSpan } from "./request-id.ts";
import type { ServerContext } from "./server-context.ts";
import { authenticate, type Caller } from "../../auth/authenticate.ts";
import { requirePermission } from "../../contract/people/may.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Ownership } from "../../contract/people/principal.ts";
import type { ResponseHeader, Route } from "../../contract/routes/route.ts";
import { type RouteName, type Routes, routes } from "../../contract/routes/routes.ts";
import type { AuditedChange } from "../../records/people/audit-records.ts";

type RouteResponder = (
  request: Request,
  params: Readonly<Record<string, string>>,
  env: unknown,
) => Promise<Response>;

/** Binds every route of the table: authenticates, parses, handles and responds. */
export function bindRoutes(app: Hono, context: ServerContext, handlers: RouteHandlers): void {
  const byPath = Map.groupBy(routeName.options, (name) => routes[name].path);
  for (const [path, names] of byPath) {
    const responders = bindMethods(context, names, handlers);
    const allow = [...responders.keys()].join(", ");
    app.all(`/v1${path.replaceAll(/\{(\w+)\}/g, ":$1")}`, async (c) => {
      const { raw } = c.req;
      const respond = responders.get(raw.method);
      if (respond) return respond(raw, c.req.param(), c.env);
      const message = `"${path}" does not have the method ${raw.method}, only ${allow}`;
      throw new ServiceError("method_not_allowed", message, { headers: { allow } });
    });
  }
}

const routeName = z.enum(Object.keys(routes) as [RouteName, ...RouteName[]]);

/** The routes of one path by their methods; HEAD is GET without the body. */
function bindMethods(
  context: ServerContext,
  names: readonly RouteName[],
  handlers: RouteHandlers,
): ReadonlyMap<string, RouteResponder> {
  const responders = new Map<string, RouteResponder>();
  for (const name of names) {
    responders.set(routes[name].method, bindRoute(context, name, handlers));
  }
  const get = responders.get("GET");
  if (get) responders.set("HEAD", withoutBody(get));
  return responders;
}

function bindRoute<Name extends RouteName>(
  context: ServerContext,
  name: Name,
  handlers: RouteHandlers,
): RouteResponder {
  const route: Route = routes[name];
  return async (request, params, env) => {
    if (route.action === "exchangeIdentity") {
      context.quotas.exchanges.take(callerGroup(context, request, env));
    }
    const caller = route.open ? undefined : await authenticate(context, request, route.action);
    if (caller) {
      requestSpan(request)?.setProject(caller.project);
      context.quotas.requests.take(quotaKey(caller));
      requirePermission(caller, route.action);
    }
    const { bodies } = context.quotas;
    const memory = caller
      ? bodies.ofProject(quotaKey(caller))
      : bodies.ofStranger(callerGroup(context, request, env));
    using held = memory.request;
    const parts = await readRequest(route, request, { params, held });
    if (caller && route.names)
      await requireNamedThing(context, caller, { route, id: params["id"] ?? params["project"] });
    const audit = route.audited && caller && auditedRequest(name, caller);
    const input = { ...parts, caller, audit, request };
    const answer = await handlers[name](context, asRouteInput<Name>(input));
    const { take, takeAnyway } = memory.answer;
    const response = buildResponse(answer, route.method === "GET" ? take : takeAnyway);
    releaseAfterAnswer(env, memory.answer);
    return response;
  };
}

/** People without a role take nothing of a project's. */
function quotaKey({ session, role, project }: Caller): string {
  return session !== null && role === null ? session.personId : project;
}

function auditedRequest(action: RouteName, caller: Caller): AuditedChange {
  const { project, tokenId, name, session } = caller;
  return { project, action, tokenId, tokenName: name, personId: session?.personId ?? null };
}

/** @throws ServiceError not_found where what the path names is not the caller's */
async function requireNamedThing(
  { records }: ServerContext,
  caller: Caller,
  { route: { action, names = "job" }, id = "" }: { route: Route; id: string | undefined },
): Promise<void> {
  const owner = await findOwner(records, names, id);
  requirePermission(caller, action, { owner, notFound: () => notFoundError(names, id) });
}

async function findOwner(
  { owners, projects }: ServerContext["records"],
  names: NonNullable<Route["names"]>,
  id: string,
): Promise<Ownership | undefined> {
  switch (names) {
    case "job":
      return owners.findOfJob(id);
    case "batch":
      return owners.findOfBatch(id);
    case "project":
      return (await projects.has(id)) ? { project: id, origin: null } : undefined;
  }
}

/** `readRequest()` has parsed each part with the schema that gives it its type here. */
function asRouteInput<Name extends RouteName>(input: RequestParts): RouteInput<Routes[Name]> {
  return input as RouteInput<Routes[Name]>;
}

function withoutBody(get: RouteResponder): RouteResponder {
  return async (request, params, env) => {
    const { body, status, headers } = await get(request, params, env);
    await body?.cancel();
    return new Response(null, { status, headers });
  };
}

/** A route's request, each part in the type that its schema gives. */
export interface RouteInput<R extends Route> {
  readonly params: Parsed<R, "params">;
  readonly query: Parsed<R, "query">;
  readonly headers: Parsed<R, "headers">;
  readonly body: Parsed<R, "body">;
  readonly caller: R extends { readonly open: true } ? undefined : Caller;
  /** The request's entry in the audit, which handlers write with their change. */
  readonly audit: R extends { readonly audited: true } ? AuditedChange : undefined;
  readonly request: Request;
}

type Parsed<R extends Route, Part extends "params" | "query" | "headers" | "body"> = R extends {
  readonly [P in Part]: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : undefined;

/** One of the replies that a route has in the table. */
type RouteAnswer<R extends Route> = {
  [Status in keyof R["replies"] & number]: { readonly status: Status } & ReplyContent<
    R["replies"][Status]
  > &
    ReplyHeaders<R["replies"][Status]>;
}[keyof R["replies"] & number];

type ReplyContent<Reply> = Reply extends { readonly json: infer Schema extends z.ZodType }
  ? { readonly json: z.output<Schema> | JsonText<z.output<Schema>> }
  : Reply extends { readonly stream: readonly (infer MediaType extends string)[] }
    ? { readonly stream: ReadableStream<Uint8Array> | Readable; readonly mediaType: MediaType }
    : unknown;

type ReplyHeaders<Reply> = Reply extends {
  readonly headers: readonly (infer Name extends ResponseHeader)[];
}
  ? { readonly headers: Partial<Record<Name, string>> }
  : unknown;

/** The endpoint of every route. */
export type RouteHandlers = {
  readonly [Name in RouteName]: (
    context: ServerContext,
    input: RouteInput<Routes[Name]>,
  ) => Promise<RouteAnswer<Routes[Name]>>;
};
