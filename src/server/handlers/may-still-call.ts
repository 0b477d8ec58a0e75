import { authenticate, type Caller } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import { may } from "../../contract/people/may.ts";
import { creationOwner } from "../../contract/people/principal.ts";

const refusals: ReadonlySet<string> = new Set(["unauthorized", "missing_scope"]);
const action = "readWork";
/** For how long requests with one secret share an authentication, milliseconds. */
const sharedMs = 500;

type AuthenticationContext = Parameters<typeof authenticate>[0];

/** A request that is still being answered. */
interface OpenRequest {
  readonly caller: Caller;
  readonly request: Request;
}

/** Whether the caller of a request may read the same work now. */
export function mayStillCall(
  context: AuthenticationContext,
  { caller, request }: OpenRequest,
): Promise<boolean> {
  return mayReadOn(caller, authenticate(context, request, action));
}

/** As `mayStillCall()`, for many requests: those with one secret are authenticated together. */
export function shareAccessChecks(
  context: AuthenticationContext,
): (open: OpenRequest) => Promise<boolean> {
  const recent = new Map<string, Promise<Caller>>();
  return ({ caller, request }) => {
    const { secret } = caller;
    let found = recent.get(secret);
    if (found === undefined) {
      found = authenticate(context, request, action);
      recent.set(secret, found);
      setTimeout(() => recent.delete(secret), sharedMs).unref();
    }
    return mayReadOn(caller, found);
  };
}

async function mayReadOn(then: Caller, now: Promise<Caller>): Promise<boolean> {
  try {
    return may(await now, action, creationOwner(then));
  } catch (error) {
    if (error instanceof ServiceError && refusals.has(error.code)) return false;
    throw error;
  }
}
