import { z } from "zod";
import type { Route } from "./route.ts";
import { target } from "./target.ts";

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
