import type { Handlers } from "./route-handler.ts";
import type { ServerContext } from "./server-context.ts";

export function targetHandlers({ targets }: ServerContext): Pick<Handlers, "listTargets"> {
  return {
    listTargets: async () => ({ status: 200, json: { targets: [...targets] } }),
  };
}
