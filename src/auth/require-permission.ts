import { ServiceError } from "../contract/errors.ts";
import { hasScope, may } from "../contract/people/may.ts";
import { type Action, permissionTable } from "../contract/people/permissions.ts";
import type { Ownership, Principal } from "../contract/people/principal.ts";

/**
 * Requires that the caller may do the action, to the thing where it concerns one.
 * @throws ServiceError missing_scope, or the thing's `notFound`
 */
export function requirePermission(
  principal: Principal,
  action: Action,
  thing?: {
    /** Undefined if there is no such thing. */
    readonly owner: Ownership | undefined;
    /** The error: the same whether there is none or it is out of reach. */
    readonly notFound: () => ServiceError;
  },
): void {
  requireScope(principal, action);
  const isReached = thing === undefined || thing.owner !== undefined;
  if (isReached && may(principal, action, thing?.owner)) return;
  throw thing?.notFound() ?? outOfReachError(action);
}

function requireScope(principal: Principal, action: Action): void {
  if (hasScope(principal, action)) return;
  const { scope } = permissionTable[action];
  const lacking = principal.tokenId === null ? "Your role in this project" : "The access token";
  throw new ServiceError("missing_scope", `${lacking} lacks the scope "${scope}"`, {
    headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` },
  });
}

function outOfReachError(action: Action): ServiceError {
  const { reach, does } = permissionTable[action];
  const needed = `This needs the reach "${reach}": ${does}`;
  return new ServiceError("missing_scope", `The access token does not reach so far. ${needed}`);
}
