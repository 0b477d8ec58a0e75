import type { Hono } from "hono";
import { ServiceError } from "../contract/errors.ts";
import { findRoute } from "./find-route.ts";
import type { ServerContext } from "./server-context.ts";

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

/** Metrics, which need no token, and of them those of the requests that `counted` answers. */
export function bindMetrics(app: Hono, counted: Hono, { metrics }: ServerContext): void {
  counted.use(async (c, next) => {
    const start = performance.now();
    await next();
    const { status } = c.res;
    const seconds = (performance.now() - start) / 1000;
    const route = findRoute(c) ?? "none";
    metrics.observeRequest({ method: c.req.method, route, status, seconds });
  });
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
