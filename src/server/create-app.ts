import { Hono } from "hono";
import { openApiDocument } from "../contract/openapi.ts";
import { artifactHandlers } from "./artifacts.ts";
import { batchHandlers } from "./batches.ts";
import { bindRoutes } from "./bind-routes.ts";
import { bindGitHubWebhook } from "./github-webhook.ts";
import { bindHealth } from "./health.ts";
import { jobHandlers } from "./jobs.ts";
import { logHandlers } from "./logs.ts";
import { modelHandlers } from "./models.ts";
import { notFound } from "./not-found.ts";
import { problemResponse } from "./problem-response.ts";
import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";
import { targetHandlers } from "./targets.ts";
import { tokenHandlers } from "./tokens.ts";
import { bindWorkerBlobs } from "./worker-blobs.ts";
import { bindWorkerProtocol } from "./worker-protocol.ts";

/** The service's HTTP interface. */
export function createApp(context: ServerContext): Hono {
  const document = openApiDocument();
  const handlers: Handlers = {
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
  app.notFound((c) => problemResponse(notFound("resource", c.req.path), c.req.raw, context.log));
  app.onError((error, c) => problemResponse(error, c.req.raw, context.log));
  return app;
}
