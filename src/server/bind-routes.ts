import type { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import { type Route, type RouteName, type Routes, routes } from "../contract/routes.ts";
import { answerResponse } from "./answer-response.ts";
import { authenticate, type Caller, requireScope } from "./authenticate.ts";
import { readRequest, type RequestParts } from "./read-request.ts";
import type { Handlers, RouteInput } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

type Answer = (request: Request, params: Readonly<Record<string, string>>) => Promise<Response>;

/** Makes an endpoint of every route in the table: authenticate, parse, handle, answer. */
export function bindRoutes(app: Hono, context: ServerContext, handlers: Handlers): void {
  const names = routeName.options;
  for (const [path, group] of Map.groupBy(names, (name) => routes[name].path)) {
    const answers = new Map(group.map((name) => [routes[name].method as string, bindRoute(context, name, handlers)]));
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

function bindRoute<Name extends RouteName>(context: ServerContext, name: Name, handlers: Handlers): Answer {
  const route: Route = routes[name];
  return async (request, params) => {
    const caller = route.open ? undefined : await authenticate(context, request);
    if (caller !== undefined && route.scope !== null) requireScope(caller, route.scope);
    const parts = await readRequest(route, request, params);
    return answerResponse(await handlers[name](inputOf<Name>(parts, caller, request)));
  };
}

/** `readRequest()` has parsed each part with the schema that gives it its type here. */
function inputOf<Name extends RouteName>(
  parts: RequestParts,
  caller: Caller | undefined,
  request: Request,
): RouteInput<Routes[Name]> {
  return { ...parts, caller, request } as RouteInput<Routes[Name]>;
}

function withoutBody(get: Answer): Answer {
  return async (request, params) => {
    const { body, status, headers } = await get(request, params);
    await body?.cancel();
    return new Response(null, { status, headers });
  };
}
