import type { Conclusion } from "../report/conclude.ts";
import type { CheckOutput } from "../report/report.ts";
import type { GitHubClient } from "./github-client.ts";

/** A button below a check run. */
export interface CheckAction {
  readonly identifier: string;
  /** At most 20 characters. */
  readonly label: string;
  /** At most 40 characters. */
  readonly description: string;
}

export interface CheckContent {
  readonly output: CheckOutput;
  /** Without it the check run is in progress. */
  readonly conclusion?: Conclusion | undefined;
  readonly actions?: readonly CheckAction[];
}

/** The commit that check runs belong to. */
interface Commit {
  /** `owner/name`. */
  readonly repository: string;
  readonly sha: string;
}

interface CheckIdentity {
  readonly name: string;
  /** Tells the check run from all others of its name. */
  readonly externalId: string;
  readonly detailsUrl: string;
}

/** Writes check runs of one commit. */
export function checkRunsOf(client: GitHubClient, { repository, sha }: Commit) {
  const [owner = "", repo = ""] = repository.split("/");

  async function find({ name, externalId }: CheckIdentity): Promise<number | undefined> {
    const { data } = await client.rest.checks.listForRef({
      owner,
      repo,
      ref: sha,
      check_name: name,
      filter: "all",
      per_page: 100,
    });
    return data.check_runs.find(({ external_id }) => external_id === externalId)?.id;
  }

  async function update(id: number, content: CheckContent): Promise<void> {
    await client.rest.checks.update({ owner, repo, check_run_id: id, ...bodyOf(content) });
  }

  return {
    /** Makes the check run, or writes the one that was made by a request whose answer was lost. */
    async write(identity: CheckIdentity, content: CheckContent): Promise<number> {
      const made = await find(identity);
      if (made !== undefined) {
        await update(made, content);
        return made;
      }
      const { data } = await client.rest.checks.create({
        owner,
        repo,
        name: identity.name,
        head_sha: sha,
        external_id: identity.externalId,
        details_url: identity.detailsUrl,
        ...bodyOf(content),
        request: { retries: 0 },
      });
      return data.id;
    },

    update,
  };
}

function bodyOf({ output, conclusion, actions = [] }: CheckContent) {
  const state = conclusion ? { status: "completed" as const, conclusion } : { status: "in_progress" as const };
  return { ...state, output: { ...output }, actions: actions.map((action) => ({ ...action })) };
}
