import type { Hono } from "hono";
import type { Log } from "../log/json-log.ts";
import { requestId } from "./request-id.ts";
import { requestSpan } from "./trace-requests.ts";

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/**
 * Gives each answer the id of its request, and logs a line for it: the path without its query, in
 * which sources with secrets can be.
 */
export function logRequests(app: Hono, log: Log): void {
  app.use(async (c, next) => {
    const start = performance.now();
    await next();
    const id = requestId(c.req.raw);
    c.res.headers.set("x-request-id", id);
    const { method, path } = c.req;
    // Machines ask for these every few seconds; a worker's requests are logged where they fail.
    const isRoutine = probes.has(path) || (path.startsWith("/worker/") && c.res.status < 400);
    if (isRoutine) return;
    const ms = Math.round(performance.now() - start);
    log("info", "A request was answered", {
      requestId: id,
      traceId: requestSpan(c.req.raw)?.traceId,
      method,
      path,
      status: c.res.status,
      ms,
    });
  });
}
