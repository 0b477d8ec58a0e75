import { authenticate } from "../auth/authenticate.ts";
import { ServiceError } from "../contract/errors.ts";
import { may } from "../contract/may.ts";
import { creationOwner, type Principal } from "../contract/principal.ts";
import type { ServerContext } from "./server-context.ts";

/** Whether the caller of a request that is still being answered may read the same work now. */
export async function mayStillCall(
  context: Pick<ServerContext, "records" | "now" | "publicUrl">,
  { caller, request }: { readonly caller: Principal; readonly request: Request },
): Promise<boolean> {
  try {
    return may(await authenticate(context, request), "readWork", creationOwner(caller));
  } catch (error) {
    if (error instanceof ServiceError && error.code === "unauthorized") return false;
    throw error;
  }
}
