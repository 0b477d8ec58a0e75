import { Hono } from "hono";
import { openApiDocument } from "../contract/openapi/openapi-document.ts";
import { artifactHandlers } from "./artifact-handlers.ts";
import { auditHandlers } from "./audit-handlers.ts";
import { batchHandlers } from "./batch-handlers.ts";
import { bindDashboard } from "./bind-dashboard.ts";
import { bindGitHubWebhook } from "./bind-github-webhook.ts";
import { bindHealth, bindMetrics, countRequests } from "./bind-health.ts";
import { bindRoutes } from "./bind-routes.ts";
import { bindSingleSignOn } from "./bind-single-sign-on.ts";
import { bindWorkerBlobs } from "./bind-worker-blobs.ts";
import { bindWorkerProtocol } from "./bind-worker-protocol.ts";
import { createEventHandlers } from "./event-handlers.ts";
import { jobHandlers } from "./job-handlers.ts";
import { linkHandlers } from "./link-handlers.ts";
import { createLogHandlers } from "./log-handlers.ts";
import { logRequests } from "./log-requests.ts";
import { memberHandlers } from "./member-handlers.ts";
import { modelHandlers } from "./model-handlers.ts";
import { notFoundError } from "./not-found-error.ts";
import { passkeyHandlers } from "./passkey-handlers.ts";
import { problemResponse } from "./problem-response.ts";
import { projectHandlers } from "./project-handlers.ts";
import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";
import { sessionHandlers } from "./session-handlers.ts";
import { statusHandlers } from "./status-handlers.ts";
import { suiteHandlers } from "./suite-handlers.ts";
import { targetHandlers } from "./target-handlers.ts";
import { tokenHandlers } from "./token-handlers.ts";
import { traceRequests } from "./trace-requests.ts";
import { usageHandlers } from "./usage-handlers.ts";
import { webhookHandlers } from "./webhook-handlers.ts";

/** What is answered on ports of its own, where it is. */
interface SeparateApps {
  /** Metrics, and probes once more. */
  readonly monitoring?: Hono | undefined;
  readonly workers?: Hono | undefined;
}

/** The service's HTTP interface, without what the other apps answer instead. */
export function createApp(
  context: ServerContext,
  { monitoring, workers }: SeparateApps = {},
): Hono {
  const app = new Hono();
  prepareApp(app, context);
  if (workers) prepareApp(workers, context);
  if (monitoring) answerErrors(monitoring, context);
  bindMetrics(monitoring ?? app, context);
  bindHealth(app, context);
  if (monitoring) bindHealth(monitoring, context);
  bindRoutes(app, context, createHandlers(context));
  bindGitHubWebhook(app, context);
  bindWorkerProtocol(workers ?? app, context);
  bindWorkerBlobs(workers ?? app, context);
  if (context.singleSignOn) bindSingleSignOn(app, context, context.singleSignOn);
  if (context.dashboard) bindDashboard(app, context.dashboard);
  return app;
}

/** What holds for every request. */
function prepareApp(app: Hono, context: ServerContext): void {
  answerErrors(app, context);
  logRequests(app, context.log);
  if (context.tracing) traceRequests(app, context.tracing);
  addDefaultHeaders(app);
  countRequests(app, context);
}

function answerErrors(app: Hono, { log }: ServerContext): void {
  app.notFound((c) => problemResponse(notFoundError("resource", c.req.path), c.req.raw, log));
  app.onError((error, c) => problemResponse(error, c.req.raw, log));
}

function addDefaultHeaders(app: Hono): void {
  app.use(async (c, next) => {
    await next();
    c.res.headers.set("x-content-type-options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  });
}

function createHandlers(context: ServerContext): RouteHandlers {
  // Making it takes a tenth of the time in which the service starts, and few ask for it.
  let document: ReturnType<typeof openApiDocument> | undefined;
  return {
    ...jobHandlers,
    ...createLogHandlers(context),
    ...createEventHandlers(),
    ...artifactHandlers,
    ...linkHandlers,
    ...batchHandlers,
    ...modelHandlers,
    ...statusHandlers,
    ...suiteHandlers,
    ...targetHandlers,
    ...tokenHandlers,
    ...sessionHandlers,
    ...passkeyHandlers,
    ...projectHandlers,
    ...memberHandlers,
    ...auditHandlers,
    ...usageHandlers,
    ...webhookHandlers,
    getOpenApi: async () => ({ status: 200, json: (document ??= openApiDocument()) }),
  };
}
