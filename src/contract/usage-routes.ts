import type { Route } from "./route.ts";
import { usage } from "./usage.ts";

export const usageRoutes = {
  getUsage: {
    method: "GET",
    path: "/usage",
    summary: "Read how much of its quotas the project uses",
    action: "readUsage",
    replies: { 200: { json: usage } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
