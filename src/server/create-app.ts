import { Hono } from "hono";
import { openApiDocument } from "../contract/openapi-document.ts";
import { artifactHandlers } from "./artifact-handlers.ts";
import { batchHandlers } from "./batch-handlers.ts";
import { bindRoutes } from "./bind-routes.ts";
import { bindGitHubWebhook } from "./bind-github-webhook.ts";
import { bindHealth } from "./bind-health.ts";
import { jobHandlers } from "./job-handlers.ts";
import { logHandlers } from "./log-handlers.ts";
import { modelHandlers } from "./model-handlers.ts";
import { notFoundError } from "./not-found-error.ts";
import { problemResponse } from "./problem-response.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";
import { targetHandlers } from "./target-handlers.ts";
import { tokenHandlers } from "./token-handlers.ts";
import { bindWorkerBlobs } from "./bind-worker-blobs.ts";
import { bindWorkerProtocol } from "./bind-worker-protocol.ts";

/** The service's HTTP interface. */
export function createApp(context: ServerContext): Hono {
  const document = openApiDocument();
  const handlers: RouteHandlers = {
    ...jobHandlers(context),
    ...logHandlers(context),
    ...artifactHandlers(context),
    ...batchHandlers(context),
    ...modelHandlers(context),
    ...targetHandlers(context),
    ...tokenHandlers(context),
    getOpenApi: async () => ({ status: 200, json: document }),
  };
  const app = new Hono();
  app.use(async (c, next) => {
    await next();
    c.res.headers.set("x-content-type-options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  });
  bindHealth(app, context);
  bindRoutes(app, context, handlers);
  bindGitHubWebhook(app, context);
  bindWorkerProtocol(app, context);
  bindWorkerBlobs(app, context);
  app.notFound((c) =>
    problemResponse(notFoundError("resource", c.req.path), c.req.raw, context.log),
  );
  app.onError((error, c) => problemResponse(error, c.req.raw, context.log));
  return app;
}
