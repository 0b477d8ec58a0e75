import * as core from "@actions/core";
import { type Revision, revision as revisionSchema } from "../contract/revision.ts";
import type { Scope } from "../contract/people/token.ts";
import type { GitHub } from "./connect-github.ts";
import type { Inputs } from "./inputs.ts";
import type { BaseRevision } from "./triggering-commit.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** Value of the input `baseline` that compares with nothing. */
const noBaseline = "none";

interface RevisionOptions {
  readonly inputs: Pick<Inputs, "baseline" | "dry-run">;
  readonly github: GitHub | undefined;
  /** Scopes of the service's token, where they are known. */
  readonly scopes: readonly Scope[] | undefined;
}

/**
 * The commit of the models, and what their results are compared with; undefined for a run without a
 * commit.
 */
export async function resolveRevision(
  run: WorkflowRun,
  { inputs, github, scopes }: RevisionOptions,
): Promise<Revision | undefined> {
  const base = selectBase(run, inputs.baseline);
  const mayRecord =
    scopes === undefined || scopes.includes("baselines:write") || scopes.includes("admin");
  const parsed = revisionSchema.safeParse({
    sha: run.headSha,
    branch: run.branch,
    base: base && { ...base, mergeBase: await fetchMergeBase(run, base, github) },
    recordBaseline: run.isTrusted && mayRecord && !inputs["dry-run"],
  });
  return parsed.data;
}

function selectBase({ base }: WorkflowRun, baseline: string | undefined): BaseRevision | undefined {
  if (baseline === noBaseline) return undefined;
  const isOwn = baseline === undefined || baseline === base?.branch;
  return isOwn ? base : { branch: baseline };
}

/** The merge base, from GitHub since a shallow checkout lacks the history. */
async function fetchMergeBase(
  { repo, headSha, branch }: WorkflowRun,
  base: BaseRevision,
  github: GitHub | undefined,
): Promise<string | undefined> {
  if (!github || base.branch === branch) return undefined;
  const basehead = `${base.sha ?? base.branch}...${headSha}`;
  const range = { ...repo, basehead, per_page: 1 };
  try {
    const { data } = await github.rest.repos.compareCommitsWithBasehead(range);
    return data.merge_base_commit.sha;
  } catch (error) {
    core.debug(`No merge base: ${String(error)}`);
    return undefined;
  }
}
