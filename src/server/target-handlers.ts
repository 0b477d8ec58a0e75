import type { RouteHandlers } from "./route-handlers.ts";
import type { ServerContext } from "./server-context.ts";

export function targetHandlers({ targets }: ServerContext): Pick<RouteHandlers, "listTargets"> {
  return {
    listTargets: async () => ({ status: 200, json: { targets: [...targets] } }),
  };
}
