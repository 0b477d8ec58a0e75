import type { Hono } from "hono";
import { ServiceError } from "../contract/errors.ts";
import { findRoute } from "./http/request-id.ts";
import type { ServerContext } from "./http/server-context.ts";

/** Probes, which need no token. */
export function bindHealth(app: Hono, context: ServerContext): void {
  app.get("/healthz", (c) => {
    const problem = context.executor.livenessProblem?.();
    return problem === undefined ? c.text("ok\n") : c.text(`${problem}\n`, 503);
  });
  app.get("/readyz", async (c) => {
    const problem = await findReadinessProblem(context);
    return problem === undefined ? c.text("ok\n") : c.text(`${problem}\n`, 503);
  });
}

/** Adds the requests that the app answers to the metrics. */
export function countRequests(app: Hono, { metrics }: ServerContext): void {
  app.use(async (c, next) => {
    const start = performance.now();
    await next();
    const { status } = c.res;
    const seconds = (performance.now() - start) / 1000;
    const route = findRoute(c) ?? "none";
    metrics.observeRequest({ method: c.req.method, route, status, seconds });
  });
}

/** Metrics, which need no token. */
export function bindMetrics(app: Hono, { metrics }: ServerContext): void {
  app.get("/metrics", async (c) =>
    c.body(await metrics.registry.metrics(), 200, { "content-type": metrics.registry.contentType }),
  );
}

/** @throws ServiceError unavailable */
async function findReadinessProblem({
  records,
  executor,
}: ServerContext): Promise<string | undefined> {
  await records.jobs.check().catch((cause: unknown) => {
    throw new ServiceError("unavailable", "The service's records cannot be read", { cause });
  });
  return executor.readinessProblem();
}
