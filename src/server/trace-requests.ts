import type { Hono } from "hono";
import type { Tracing } from "../tracing/open-tracing.ts";
import type { RequestSpan } from "../tracing/request-span.ts";
import { findRoute } from "./find-route.ts";
import { requestId } from "./request-id.ts";

const spans = new WeakMap<Request, RequestSpan>();

/** Makes a span of each request of the interface, until its answer begins. */
export function traceRequests(app: Hono, tracing: Tracing): void {
  app.use("/v1/*", async (c, next) => {
    const { raw } = c.req;
    const span = tracing.startRequest(raw, requestId(raw));
    spans.set(raw, span);
    await next();
    span.end({ route: findRoute(c), status: c.res.status });
  });
}

/** Undefined where requests are not traced. */
export function requestSpan(request: Request): RequestSpan | undefined {
  return spans.get(request);
}
