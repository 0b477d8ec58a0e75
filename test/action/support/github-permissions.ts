type Access = "none" | "read" | "write";

/** What a token may do in a repository. */
export interface Permissions {
  checks: Access;
  contents: Access;
  issues: Access;
  pull_requests: Access;
}

type Need = readonly [keyof Permissions, Access];

/** What each operation needs; one of several is enough. */
const needs: Readonly<Record<string, readonly Need[]>> = {
  "checks/create": [["checks", "write"]],
  "checks/update": [["checks", "write"]],
  "checks/get": [["checks", "read"]],
  "checks/list-annotations": [["checks", "read"]],
  "checks/list-for-ref": [["checks", "read"]],
  "git/get-commit": [["contents", "read"]],
  "issues/create-comment": [
    ["issues", "write"],
    ["pull_requests", "write"],
  ],
  "issues/update-comment": [
    ["issues", "write"],
    ["pull_requests", "write"],
  ],
  "issues/list-comments": [
    ["issues", "read"],
    ["pull_requests", "read"],
  ],
  "repos/compare-commits-with-basehead": [["contents", "read"]],
};

const order: readonly Access[] = ["none", "read", "write"];

export function isPermitted(operation: string, permissions: Permissions): boolean {
  const needed = needs[operation] ?? [];
  return (
    needed.length === 0 ||
    needed.some(([name, access]) => order.indexOf(permissions[name]) >= order.indexOf(access))
  );
}

/** In the words of the header that GitHub sends with a refusal. */
export function neededPermissions(operation: string): string {
  return (needs[operation] ?? []).map(([name, access]) => `${name}=${access}`).join("; ");
}
