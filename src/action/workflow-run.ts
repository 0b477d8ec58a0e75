import { readFile } from "node:fs/promises";
import { z } from "zod";

/** A state of the repository to compare with. */
export interface BaseRevision {
  readonly branch: string;
  readonly sha?: string;
}

/** Where and why the step runs. */
export interface WorkflowRun {
  /** `owner/name`. */
  readonly repository: string;
  readonly runId: string;
  /** Rises by one with each repetition of the run, from 1. */
  readonly attempt: number;
  /** What tells the step from all others of the run, but for its leg of the matrix. */
  readonly step: string;
  /** The commit that check runs belong to: of a pull request its own last one, not the merge that was checked out. */
  readonly headSha: string;
  /** The branch that was pushed to or that the workflow was started on; absent for tags and for proposed changes. */
  readonly branch: string | undefined;
  /** What the commit is compared with. */
  readonly base: BaseRevision | undefined;
  /** Whether others may be compared with what the run measures: its branch is the default one, or protected. */
  readonly isTrusted: boolean;
  readonly pullRequest: number | undefined;
  /** Why the workflow gets no secrets and no OIDC token, where that is so. */
  readonly untrusted: "fork" | "dependabot" | undefined;
  /** Where the run can be read. */
  readonly url: string;
  /** Of GitHub's REST interface, without a slash at the end. */
  readonly apiUrl: string;
  readonly workspace: string;
}

const ref = z.object({ ref: z.string(), sha: z.string() });

/** The part of events that matters, for all that start workflows. */
const event = z.object({
  repository: z.object({ default_branch: z.string().optional() }).optional(),
  before: z.string().optional(),
  pull_request: z
    .object({
      number: z.int(),
      head: ref.extend({ repo: z.object({ full_name: z.string() }).nullish() }),
      base: ref,
    })
    .optional(),
  merge_group: z
    .object({ head_sha: z.string(), base_sha: z.string(), base_ref: z.string() })
    .optional(),
  workflow_run: z
    .object({
      head_sha: z.string(),
      pull_requests: z.array(z.object({ number: z.int(), base: ref })).default([]),
    })
    .optional(),
});
type Event = z.infer<typeof event>;

const variables = z.object({
  GITHUB_REPOSITORY: z.string().default(""),
  GITHUB_RUN_ID: z.string().default(""),
  GITHUB_RUN_ATTEMPT: z.coerce.number().catch(1),
  GITHUB_WORKFLOW: z.string().default(""),
  GITHUB_JOB: z.string().default(""),
  GITHUB_ACTION: z.string().default(""),
  GITHUB_ACTOR: z.string().default(""),
  GITHUB_EVENT_NAME: z.string().default(""),
  GITHUB_EVENT_PATH: z.string().default(""),
  GITHUB_SHA: z.string().default(""),
  GITHUB_REF: z.string().default(""),
  GITHUB_REF_PROTECTED: z.string().default(""),
  GITHUB_SERVER_URL: z.string().default("https://github.com"),
  GITHUB_API_URL: z.string().default("https://api.github.com"),
  GITHUB_WORKSPACE: z.string().optional(),
});
type Variables = z.infer<typeof variables>;

/** What the runner and the event say about the run. */
export async function readWorkflowRun(environment: NodeJS.ProcessEnv): Promise<WorkflowRun> {
  const read = variables.parse(environment);
  const { GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: runId, GITHUB_RUN_ATTEMPT: attempt } = read;
  const payload = await readEventPayload(read.GITHUB_EVENT_PATH);
  return {
    repository,
    runId,
    attempt,
    step: `${read.GITHUB_WORKFLOW} ${read.GITHUB_JOB} ${read.GITHUB_ACTION}`,
    ...(proposedCommit(payload) ?? pushedCommit(payload, read)),
    untrusted: findUntrustedOrigin(payload, read),
    url: `${read.GITHUB_SERVER_URL}/${repository}/actions/runs/${runId}/attempts/${attempt}`,
    apiUrl: read.GITHUB_API_URL.replace(/\/+$/, ""),
    workspace: read.GITHUB_WORKSPACE ?? process.cwd(),
  };
}

async function readEventPayload(file: string): Promise<Event> {
  if (file === "") return {};
  return event.parse(JSON.parse(await readFile(file, "utf8")));
}

type Commit = Pick<WorkflowRun, "headSha" | "branch" | "base" | "isTrusted" | "pullRequest">;

/** A commit that is proposed to a branch, or that an earlier workflow ran for. */
function proposedCommit({ repository, ...payload }: Event): Commit | undefined {
  const { pull_request: pullRequest, merge_group: mergeGroup, workflow_run: earlier } = payload;
  const proposal = { branch: undefined, isTrusted: false };
  if (pullRequest) {
    const { number, head, base } = pullRequest;
    return {
      ...proposal,
      headSha: head.sha,
      base: { branch: base.ref, sha: base.sha },
      pullRequest: number,
    };
  }
  if (mergeGroup) {
    const base = {
      branch: mergeGroup.base_ref.replace(/^refs\/heads\//, ""),
      sha: mergeGroup.base_sha,
    };
    return { ...proposal, headSha: mergeGroup.head_sha, base, pullRequest: undefined };
  }
  if (earlier) {
    const [proposed] = earlier.pull_requests;
    const base = proposed
      ? { branch: proposed.base.ref, sha: proposed.base.sha }
      : defaultBase(repository);
    return { ...proposal, headSha: earlier.head_sha, base, pullRequest: proposed?.number };
  }
  return undefined;
}

/** The commit of a push, or at which a workflow was started. */
function pushedCommit({ repository, before }: Event, read: Variables): Commit {
  const [, branch] = /^refs\/heads\/(.+)$/.exec(read.GITHUB_REF) ?? [];
  const isDefault = branch !== undefined && branch === repository?.default_branch;
  const isTrusted = isDefault || (branch !== undefined && read.GITHUB_REF_PROTECTED === "true");
  // A branch that is new has zeros there.
  const ownBase = {
    branch: branch ?? "",
    ...(before !== undefined && !/^0+$/.test(before) && { sha: before }),
  };
  const base = isTrusted ? ownBase : defaultBase(repository);
  return { headSha: read.GITHUB_SHA, branch, base, isTrusted, pullRequest: undefined };
}

function defaultBase(repository: Event["repository"]): BaseRevision | undefined {
  const branch = repository?.default_branch;
  return branch === undefined ? undefined : { branch };
}

function findUntrustedOrigin(
  { pull_request: pullRequest }: Event,
  read: Variables,
): WorkflowRun["untrusted"] {
  // `pull_request_target` runs the base branch's workflow, with its secrets.
  if (read.GITHUB_EVENT_NAME === "pull_request_target") return undefined;
  if (read.GITHUB_ACTOR === "dependabot[bot]") return "dependabot";
  return pullRequest && pullRequest.head.repo?.full_name !== read.GITHUB_REPOSITORY
    ? "fork"
    : undefined;
}
