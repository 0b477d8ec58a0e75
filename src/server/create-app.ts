import { Hono } from "hono";
import { openApiDocument } from "../contract/openapi-document.ts";
import { artifactHandlers } from "./artifact-handlers.ts";
import { auditHandlers } from "./audit-handlers.ts";
import { batchHandlers } from "./batch-handlers.ts";
import { bindGitHubWebhook } from "./bind-github-webhook.ts";
import { bindHealth } from "./bind-health.ts";
import { bindRoutes } from "./bind-routes.ts";
import { bindWorkerBlobs } from "./bind-worker-blobs.ts";
import { bindWorkerProtocol } from "./bind-worker-protocol.ts";
import { jobHandlers } from "./job-handlers.ts";
import { logHandlers } from "./log-handlers.ts";
import { modelHandlers } from "./model-handlers.ts";
import { notFoundError } from "./not-found-error.ts";
import { problemResponse } from "./problem-response.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";
import { targetHandlers } from "./target-handlers.ts";
import { tokenHandlers } from "./token-handlers.ts";

/** The service's HTTP interface. */
export function createApp(context: ServerContext): Hono {
  const { log } = context;
  const app = new Hono();
  addDefaultHeaders(app);
  bindHealth(app, context);
  bindRoutes(app, context, createHandlers());
  bindGitHubWebhook(app, context);
  bindWorkerProtocol(app, context);
  bindWorkerBlobs(app, context);
  app.notFound((c) => problemResponse(notFoundError("resource", c.req.path), c.req.raw, log));
  app.onError((error, c) => problemResponse(error, c.req.raw, log));
  return app;
}

function addDefaultHeaders(app: Hono): void {
  app.use(async (c, next) => {
    await next();
    c.res.headers.set("x-content-type-options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  });
}

function createHandlers(): RouteHandlers {
  const document = openApiDocument();
  return {
    ...jobHandlers,
    ...logHandlers,
    ...artifactHandlers,
    ...batchHandlers,
    ...modelHandlers,
    ...targetHandlers,
    ...tokenHandlers,
    ...auditHandlers,
    getOpenApi: async () => ({ status: 200, json: document }),
  };
}
