import { Hono } from "hono";
import { bindHealth, bindMetrics, countRequests } from "./bind-health.ts";
import { artifactHandlers } from "./handlers/artifact-handlers.ts";
import { attestationHandlers } from "./handlers/attestation-handlers.ts";
import { batchHandlers } from "./handlers/batch-handlers.ts";
import { bindGitHubWebhook } from "./handlers/bind-github-webhook.ts";
import { bindSingleSignOn } from "./handlers/bind-single-sign-on.ts";
import { createEventHandlers } from "./handlers/event-handlers.ts";
import { createGetJob, jobHandlers } from "./handlers/job-handlers.ts";
import { linkHandlers } from "./handlers/link-handlers.ts";
import { createLogHandlers } from "./handlers/log-handlers.ts";
import { modelHandlers } from "./handlers/model-handlers.ts";
import {
  auditHandlers,
  memberHandlers,
  projectHandlers,
  usageHandlers,
} from "./handlers/project-handlers.ts";
import { statusHandlers, targetHandlers } from "./handlers/service-handlers.ts";
import { sessionHandlers } from "./handlers/session-handlers.ts";
import { suiteHandlers } from "./handlers/suite-handlers.ts";
import { tokenHandlers } from "./handlers/token-handlers.ts";
import { webhookHandlers } from "./handlers/webhook-handlers.ts";
import { bindDashboard, bindLinkPage } from "./http/bind-dashboard.ts";
import { compressJson } from "./http/compress-json.ts";
import { bindRoutes, type RouteHandlers } from "./http/bind-routes.ts";
import { notFoundError, problemResponse } from "./http/problem-response.ts";
import { requestId, requestSpan, traceRequests } from "./http/request-id.ts";
import type { ServerContext } from "./http/server-context.ts";
import { bindWorkerBlobs } from "./worker-protocol/bind-worker-blobs.ts";
import { bindWorkerProtocol } from "./worker-protocol/bind-worker-protocol.ts";
import { bindWorkerSources } from "./worker-protocol/bind-worker-sources.ts";
import { openApiDocument } from "../contract/openapi/openapi-document.ts";
import { TokenBuckets } from "../limits/token-buckets.ts";

/**
 * The service's HTTP interface, without what the other apps answer on ports of their own: metrics,
 * and probes once more; workers' requests.
 */
export function createApp(
  context: ServerContext,
  { monitoring, workers }: { monitoring?: Hono | undefined; workers?: Hono | undefined } = {},
): Hono {
  const app = new Hono();
  compressJson(app);
  prepareApp(app, context);
  if (workers) prepareApp(workers, context);
  if (monitoring) answerErrors(monitoring, context);
  bindMetrics(monitoring ?? app, context);
  bindHealth(app, context);
  if (monitoring) bindHealth(monitoring, context);
  if (context.dashboard) bindLinkPage(app, context.dashboard);
  bindRoutes(app, context, createHandlers(context));
  bindGitHubWebhook(app, context);
  bindWorkerProtocol(workers ?? app, context);
  bindWorkerSources(workers ?? app, context);
  bindWorkerBlobs(workers ?? app, context);
  if (context.singleSignOn) bindSingleSignOn(app, context, context.singleSignOn);
  if (context.dashboard) bindDashboard(app, context.dashboard);
  return app;
}

/** What holds for every request. */
function prepareApp(app: Hono, context: ServerContext): void {
  answerErrors(app, context);
  logRequests(app, context);
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
    ...createGetJob(context),
    ...createLogHandlers(context),
    ...createEventHandlers(),
    ...artifactHandlers,
    ...attestationHandlers,
    ...linkHandlers,
    ...batchHandlers,
    ...modelHandlers,
    ...statusHandlers,
    ...suiteHandlers,
    ...targetHandlers,
    ...tokenHandlers,
    ...sessionHandlers,
    ...projectHandlers,
    ...memberHandlers,
    ...auditHandlers,
    ...usageHandlers,
    ...webhookHandlers,
    getOpenApi: async () => ({ status: 200, json: (document ??= openApiDocument()) }),
  };
}

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/**
 * Gives each answer the id of its request, and logs a line for it: the path without its query, in
 * which sources with secrets can be.
 */
function logRequests(app: Hono, { log, now }: ServerContext): void {
  // One worker that was taken over could fill the disk with what it is refused.
  const workerFailures = new TokenBuckets({ capacity: 60, refillMs: 1000, maxKeys: 1 });
  app.use(async (c, next) => {
    const start = performance.now();
    await next();
    const id = requestId(c.req.raw);
    c.res.headers.set("x-request-id", id);
    const { method, path } = c.req;
    // Machines ask for these every few seconds; a worker's requests are logged where they fail.
    if (probes.has(path)) return;
    if (path.startsWith("/worker/")) {
      if (c.res.status < 400 || !workerFailures.take("all", now().getTime())) return;
    }
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
