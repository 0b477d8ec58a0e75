import type { RouteHandlers } from "./route-handlers.ts";

export const targetHandlers: Pick<RouteHandlers, "listTargets"> = {
  listTargets: async ({ targets }) => ({ status: 200, json: { targets: [...targets] } }),
};
