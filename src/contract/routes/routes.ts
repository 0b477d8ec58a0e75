import { z } from "zod";
import { auditRoutes, memberRoutes, projectRoutes, usageRoutes } from "./project-routes.ts";
import { artifactRoutes } from "./artifact-routes.ts";
import { attestationRoutes } from "./attestation-routes.ts";
import { batchRoutes, suiteRoutes } from "./batch-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { jobRoutes } from "./job-routes.ts";
import { logRoutes } from "./log-routes.ts";
import { modelRoutes } from "./model-routes.ts";
import type { Route } from "./route.ts";
import { sessionRoutes } from "./session-routes.ts";
import { statusRoutes, targetRoutes } from "./service-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { webhookRoutes } from "./webhook-routes.ts";

/** Every endpoint under `/v1`. Server, client and OpenAPI document are bound to this table. */
export const routes = {
  ...jobRoutes,
  ...logRoutes,
  ...eventRoutes,
  ...artifactRoutes,
  ...attestationRoutes,
  ...batchRoutes,
  ...modelRoutes,
  ...statusRoutes,
  ...suiteRoutes,
  ...targetRoutes,
  ...tokenRoutes,
  ...sessionRoutes,
  ...projectRoutes,
  ...memberRoutes,
  ...auditRoutes,
  ...usageRoutes,
  ...webhookRoutes,
  getOpenApi: {
    method: "GET",
    path: "/openapi.json",
    summary: "This interface as an OpenAPI 3.1 document",
    action: "readInterface",
    replies: { 200: { json: z.record(z.string(), z.unknown()) } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

export type Routes = typeof routes;
export type RouteName = keyof Routes;
