import { authenticate } from "../auth/authenticate.ts";
import { ServiceError } from "../contract/errors.ts";
import { may } from "../contract/may.ts";
import { creationOwner, type Principal } from "../contract/principal.ts";

const refusals: ReadonlySet<string> = new Set(["unauthorized", "missing_scope"]);

/** Whether the caller of a request that is still being answered may read the same work now. */
export async function mayStillCall(
  context: Parameters<typeof authenticate>[0],
  { caller, request }: { readonly caller: Principal; readonly request: Request },
): Promise<boolean> {
  try {
    const action = "readWork";
    return may(await authenticate(context, request, action), action, creationOwner(caller));
  } catch (error) {
    if (error instanceof ServiceError && refusals.has(error.code)) return false;
    throw error;
  }
}
