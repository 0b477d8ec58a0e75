import { authenticate } from "../auth/authenticate.ts";
import { ServiceError } from "../contract/errors.ts";
import type { ServerContext } from "./server-context.ts";

/** Whether a request that is still being answered would be answered now. */
export async function mayStillCall(context: ServerContext, request: Request): Promise<boolean> {
  try {
    await authenticate(context, request);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "unauthorized") return false;
    throw error;
  }
}
