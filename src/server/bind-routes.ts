import type { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { Route } from "../contract/route.ts";
import { type RouteName, type Routes, routes } from "../contract/routes.ts";
import { buildResponse } from "./build-response.ts";
import { authenticate, type Caller, requireScope } from "../auth/authenticate.ts";
import { readRequest, type RequestParts } from "./read-request.ts";
import type { RouteHandlers, RouteInput } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

type RouteResponder = (
  request: Request,
  params: Readonly<Record<string, string>>,
) => Promise<Response>;

/** Makes an endpoint of every route in the table: authenticate, parse, handle, answer. */
export function bindRoutes(app: Hono, context: ServerContext, handlers: RouteHandlers): void {
  const names = routeName.options;
  for (const [path, group] of Map.groupBy(names, (name) => routes[name].path)) {
    const answers = new Map(
      group.map((name) => [routes[name].method as string, bindRoute(context, name, handlers)]),
    );
    const get = answers.get("GET");
    if (get) answers.set("HEAD", withoutBody(get));
    const allow = [...answers.keys()].join(", ");
    app.all(`/v1${path.replaceAll(/\{(\w+)\}/g, ":$1")}`, async (c) => {
      const { raw, method } = { raw: c.req.raw, method: c.req.raw.method };
      const answer = answers.get(method);
      if (!answer) {
        const message = `"${path}" does not have the method ${method}, only ${allow}`;
        throw new ServiceError("method_not_allowed", message, { headers: { allow } });
      }
      return answer(raw, c.req.param());
    });
  }
}

const routeName = z.enum(Object.keys(routes) as [RouteName, ...RouteName[]]);

function bindRoute<Name extends RouteName>(
  context: ServerContext,
  name: Name,
  handlers: RouteHandlers,
): RouteResponder {
  const route: Route = routes[name];
  return async (request, params) => {
    const caller = route.open ? undefined : await authenticate(context, request);
    if (caller !== undefined && route.scope !== null) requireScope(caller, route.scope);
    const parts = await readRequest(route, request, params);
    return buildResponse(await handlers[name](routeInput<Name>(parts, caller, request)));
  };
}

/** `readRequest()` has parsed each part with the schema that gives it its type here. */
function routeInput<Name extends RouteName>(
  parts: RequestParts,
  caller: Caller | undefined,
  request: Request,
): RouteInput<Routes[Name]> {
  return { ...parts, caller, request } as RouteInput<Routes[Name]>;
}

function withoutBody(get: RouteResponder): RouteResponder {
  return async (request, params) => {
    const { body, status, headers } = await get(request, params);
    await body?.cancel();
    return new Response(null, { status, headers });
  };
}
