import type { RouteHandlers } from "./route-handlers.ts";

export const auditHandlers: Pick<RouteHandlers, "listAudit"> = {
  async listAudit({ records }, { caller, query }) {
    return { status: 200, json: await records.audit.list(caller.project, query) };
  },
};
