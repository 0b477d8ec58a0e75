import * as core from "@actions/core";
import { type Revision, revision as revisionSchema } from "../contract/revision.ts";
import type { Scope } from "../contract/token.ts";
import type { GitHub } from "./connect-github.ts";
import type { Inputs } from "./read-inputs.ts";
import type { BaseRevision, WorkflowRun } from "./workflow-run.ts";

/** Compares with nothing. */
const noBaseline = "none";

interface RevisionOptions {
  readonly inputs: Pick<Inputs, "baseline" | "dry-run">;
  readonly github: GitHub | undefined;
  /** What the service's token allows, where it is known. */
  readonly scopes: readonly Scope[] | undefined;
}

/** What the models are the state of, and what their results are compared with; undefined outside of a repository. */
export async function resolveRevision(
  run: WorkflowRun,
  options: RevisionOptions,
): Promise<Revision | undefined> {
  const { inputs, github, scopes } = options;
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

function selectBase({ base }: WorkflowRun, given: string | undefined): BaseRevision | undefined {
  if (given === noBaseline) return undefined;
  return given === undefined || given === base?.branch ? base : { branch: given };
}

/** The last commit that both have, which GitHub knows also where the repository was checked out without its history. */
async function fetchMergeBase(
  { repository, headSha, branch }: WorkflowRun,
  base: BaseRevision,
  github: GitHub | undefined,
) {
  if (!github || base.branch === branch) return undefined;
  const [owner = "", repo = ""] = repository.split("/");
  try {
    const basehead = `${base.sha ?? base.branch}...${headSha}`;
    const { data } = await github.rest.repos.compareCommitsWithBasehead({
      owner,
      repo,
      basehead,
      per_page: 1,
    });
    return data.merge_base_commit.sha;
  } catch (error) {
    core.debug(`No merge base: ${String(error)}`);
    return undefined;
  }
}
