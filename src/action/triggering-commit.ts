import type { WorkflowEvent } from "./workflow-event.ts";

/** A state of the repository to compare with. */
export interface BaseRevision {
  readonly branch: string;
  readonly sha?: string;
}

/** The commit that a workflow runs for. */
export interface TriggeringCommit {
  /** For a pull request its last commit, not the merge that is checked out. */
  readonly headSha: string;
  /** The branch that the commit is on; undefined for tags and proposed changes. */
  readonly branch: string | undefined;
  /** What the commit is compared with. */
  readonly base: BaseRevision | undefined;
  /** Whether the commit may become a baseline: its branch is the default one, or protected. */
  readonly isTrusted: boolean;
  readonly pullRequest: number | undefined;
}

/** What the run itself states about its commit. */
interface RunRef {
  readonly sha: string;
  /** Such as `refs/heads/main`. */
  readonly ref: string;
  readonly isProtected: boolean;
}

const proposal = { branch: undefined, isTrusted: false, pullRequest: undefined };

export function findTriggeringCommit(event: WorkflowEvent, run: RunRef): TriggeringCommit {
  return (
    pullRequestCommit(event) ??
    mergeGroupCommit(event) ??
    earlierRunCommit(event) ??
    branchCommit(event, run)
  );
}

function pullRequestCommit({ pull_request: event }: WorkflowEvent): TriggeringCommit | undefined {
  if (!event) return undefined;
  const { number, head, base } = event;
  return {
    ...proposal,
    headSha: head.sha,
    base: { branch: base.ref, sha: base.sha },
    pullRequest: number,
  };
}

function mergeGroupCommit({ merge_group: event }: WorkflowEvent): TriggeringCommit | undefined {
  if (!event) return undefined;
  const branch = event.base_ref.replace(/^refs\/heads\//, "");
  return { ...proposal, headSha: event.head_sha, base: { branch, sha: event.base_sha } };
}

/** The commit that an earlier workflow ran for, which this one follows. */
function earlierRunCommit({
  workflow_run: event,
  repository,
}: WorkflowEvent): TriggeringCommit | undefined {
  if (!event) return undefined;
  const pullRequest = event.pull_requests.find(({ base }) => base.repo.id === repository?.id);
  const base = pullRequest
    ? { branch: pullRequest.base.ref, sha: pullRequest.base.sha }
    : defaultBranch(repository);
  return { ...proposal, headSha: event.head_sha, base, pullRequest: pullRequest?.number };
}

/**
 * The commit of a push, of a schedule or of a start by hand. A workflow that answers a comment runs
 * for the default branch, and yet its models can be those of a pull request.
 */
function branchCommit(
  { repository, before, issue }: WorkflowEvent,
  { sha, ref, isProtected }: RunRef,
): TriggeringCommit {
  const [, branch] = /^refs\/heads\/(.+)$/.exec(ref) ?? [];
  const isOfBranch = branch !== undefined && issue === undefined;
  const isTrusted = isOfBranch && (isProtected || branch === repository?.default_branch);
  const base = isTrusted ? previousCommit(branch, before) : defaultBranch(repository);
  return { headSha: sha, branch, base, isTrusted, pullRequest: undefined };
}

/** The branch before a push; GitHub states zeros for the first push of a branch. */
function previousCommit(branch: string, before: WorkflowEvent["before"]): BaseRevision {
  return before && !/^0+$/.test(before) ? { branch, sha: before } : { branch };
}

function defaultBranch(repository: WorkflowEvent["repository"]): BaseRevision | undefined {
  const branch = repository?.default_branch;
  return branch ? { branch } : undefined;
}
