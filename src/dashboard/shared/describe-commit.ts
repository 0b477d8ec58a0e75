import type { Revision } from "../../contract/revision.ts";

/** A commit for people, such as `5a1b7e0 on main`. */
export function describeCommit({ sha, branch }: Pick<Revision, "sha" | "branch">): string {
  return branch === undefined ? sha.slice(0, 7) : `${sha.slice(0, 7)} on ${branch}`;
}
