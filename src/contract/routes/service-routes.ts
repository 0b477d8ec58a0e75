import { z } from "zod";
import type { Route } from "./route.ts";
import { target } from "../jobs/target.ts";
import { serviceStatus } from "../service-status.ts";

export const statusRoutes = {
  getStatus: {
    method: "GET",
    path: "/status",
    summary: "Read how the service is: queue, workers, disk and versions",
    action: "readStatus",
    replies: { 200: { json: serviceStatus } },
    errors: [],
  },
} as const satisfies Record<string, Route>;

export const targetRoutes = {
  listTargets: {
    method: "GET",
    path: "/targets",
    summary: "Hardware profiles that jobs can name",
    action: "listTargets",
    replies: { 200: { json: z.object({ targets: z.array(target) }).meta({ id: "TargetList" }) } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
