import type { Route } from "./route.ts";
import { serviceStatus } from "./service-status.ts";

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
