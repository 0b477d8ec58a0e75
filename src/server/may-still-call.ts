import { authenticate } from "../auth/authenticate.ts";
import { ServiceError } from "../contract/errors.ts";
import { may } from "../contract/may.ts";
import type { Principal } from "../contract/principal.ts";
import type { ServerContext } from "./server-context.ts";

const refusals: ReadonlySet<string> = new Set(["unauthorized", "missing_scope"]);

/** Whether the caller of a request that is still being answered may read the same work now. */
export async function mayStillCall(
  context: ServerContext,
  { caller: { project }, request }: { readonly caller: Principal; readonly request: Request },
): Promise<boolean> {
  try {
    const action = "readWork";
    return may(await authenticate(context, request, action), action, { project, origin: {} });
  } catch (error) {
    if (error instanceof ServiceError && refusals.has(error.code)) return false;
    throw error;
  }
}
