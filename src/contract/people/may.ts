import { ServiceError } from "../errors.ts";
import { isPublicRun } from "./is-public-run.ts";
import type { Origin, Ownership, Principal } from "./principal.ts";
import { type Action, permissionTable, type Reach } from "./permissions.ts";
import { defaultProject } from "../project.ts";

export function hasScope({ scopes }: Pick<Principal, "scopes">, action: Action): boolean {
  const { scope } = permissionTable[action];
  return scope === null || scopes.includes(scope) || scopes.includes("admin");
}

/** Whether the principal may do the action, to a thing of the owner where it concerns one. */
export function may(principal: Principal, action: Action, owner?: Ownership): boolean {
  if (!hasScope(principal, action)) return false;
  const { reach } = permissionTable[action];
  switch (reach) {
    case "any":
      return true;
    case "installation":
      return principal.project === defaultProject;
    case "administered":
      return principal.workflow === null && reachesProject(principal, owner);
    case "own":
      return principal.workflow === null && reachesOwn(principal, owner);
    case "project":
      return principal.workflow === null && isOfProject(principal, owner);
    case "repository":
    case "commit":
      return isOfProject(principal, owner) && isOfOrigin(reachedOrigin(principal, action), owner);
  }
}

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

function isOfProject({ project }: Principal, owner: Ownership | undefined): boolean {
  return owner === undefined || owner.project === project;
}

function reachesProject(principal: Principal, owner: Ownership | undefined): boolean {
  return principal.project === defaultProject || isOfProject(principal, owner);
}

function reachesOwn(principal: Principal, owner: Ownership | undefined): boolean {
  const { scopes, personId } = principal;
  if (!isOfProject(principal, owner)) return false;
  if (scopes.includes("admin")) return true;
  return personId !== null && (owner === undefined || owner.personId === personId);
}

function isOfOrigin(
  { repository, commit }: Partial<Origin>,
  owner: Ownership | undefined,
): boolean {
  if (owner === undefined) return true;
  return (
    (repository === undefined || repository === owner.origin?.repository) &&
    (commit === undefined || commit === owner.origin?.commit)
  );
}

/** What the origin of things has to be for an action to reach them; any where it is undefined. */
export function reachedOrigin(
  { workflow }: Pick<Principal, "workflow">,
  action: Action,
): Partial<Origin> {
  const reach: Reach = permissionTable[action].reach;
  if (workflow === null || !(reach === "repository" || reach === "commit")) return {};
  const repository = workflow.repositoryId;
  const isOwnCommit = reach === "commit" && isPublicRun(workflow);
  return isOwnCommit ? { repository, commit: workflow.commit } : { repository };
}
