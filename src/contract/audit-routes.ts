import { auditPage, auditQuery } from "./audit.ts";
import type { Route } from "./route.ts";

export const auditRoutes = {
  listAudit: {
    method: "GET",
    path: "/audit",
    summary: "List who changed what, newest first",
    action: "readAudit",
    query: auditQuery,
    replies: { 200: { json: auditPage } },
    errors: ["invalid_cursor"],
  },
} as const satisfies Record<string, Route>;
