import { isPublicRun } from "../contract/people/is-public-run.ts";
import type { Workflow } from "../contract/people/principal.ts";
import type { GitHubApp } from "../github-app/open-github-app.ts";

const pullRequestRef = /^refs\/pull\/\d+\/merge$/;

/**
 * The commit whose state a run shows: the last one of a pull request, where GitHub runs for its
 * merge. Other runs that strangers can cause are for a commit that is not theirs.
 */
export async function findOwnCommit(github: GitHubApp, run: Workflow): Promise<string | undefined> {
  const { event, ref, repository, commit } = run;
  if (!isPublicRun(run)) return commit;
  if (event !== "pull_request" || !pullRequestRef.test(ref)) return undefined;
  return github.findMergedCommit(repository, commit);
}
