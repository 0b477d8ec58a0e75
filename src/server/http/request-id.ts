import type { Context, Hono } from "hono";
import { matchedRoutes } from "hono/route";
import type { ServerContext } from "./server-context.ts";
import type { Tracing } from "../../tracing/open-tracing.ts";
import type { RequestSpan } from "../../tracing/request-span.ts";

const pattern = /^[\w.:-]{1,128}$/;
const ids = new WeakMap<Request, string>();

/** The id of a request, as a caller or a proxy gave it in `X-Request-Id`, or a new one. */
export function requestId(request: Request): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const given = request.headers.get("x-request-id") ?? "";
  const id = pattern.test(given) ? given : crypto.randomUUID();
  ids.set(request, id);
  return id;
}

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

/** Links the request's span to the trace of a job that it repeats, where both are traced. */
export async function linkFormerTrace(
  { records }: ServerContext,
  request: Request,
  jobId: string,
): Promise<void> {
  const span = requestSpan(request);
  if (span === undefined) return;
  const former = await records.traces.findTraceparent(jobId);
  if (former !== undefined) span.link(former);
}

/** The path of the route that answers, with the names of its parameters; undefined for none. */
export function findRoute(c: Context): string | undefined {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith("*"))?.path;
}
