import { isPublicRun } from "./is-public-run.ts";
import type { Origin, Ownership } from "./owner.ts";
import { type Action, permissionTable, type Reach } from "./permissions.ts";
import type { Principal } from "./principal.ts";
import { defaultProject } from "./project.ts";

export function hasScope({ scopes }: Pick<Principal, "scopes">, action: Action): boolean {
  const { scope } = permissionTable[action];
  return scope === null || scopes.includes(scope) || scopes.includes("admin");
}

/** Whether the principal may do the action, to a thing of the owner where it concerns one. */
export function may(principal: Principal, action: Action, owner?: Ownership): boolean {
  if (!hasScope(principal, action)) return false;
  const { reach } = permissionTable[action];
  if (reach === "installation") return principal.project === defaultProject;
  if (reach === "project" && principal.workflow !== null) return false;
  if (reach === "any" || owner === undefined) return true;
  const { repository, commit } = reachedOrigin(principal, action);
  return (
    owner.project === principal.project &&
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
