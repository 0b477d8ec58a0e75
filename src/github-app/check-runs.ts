import type { Annotation } from "../report/annotations.ts";
import { checkBodies, type CheckContent as Shown } from "../report/check-bodies.ts";
import type { GitHubClient } from "./github-client.ts";

/** A button below a check run. */
export interface CheckAction {
  readonly identifier: string;
  /** At most 20 characters. */
  readonly label: string;
  /** At most 40 characters. */
  readonly description: string;
}

export interface CheckContent extends Omit<Shown, "annotations"> {
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

  /** An update may have been broken off, or its answer lost: the check run has the first annotations then. */
  async function annotationsLeft(id: number, annotations: readonly Annotation[]): Promise<readonly Annotation[]> {
    if (annotations.length === 0) return annotations;
    const { data } = await client.rest.checks.get({ owner, repo, check_run_id: id });
    return annotations.slice(data.output.annotations_count);
  }

  async function update(id: number, content: CheckContent, annotations: readonly Annotation[] = []): Promise<void> {
    const left = await annotationsLeft(id, annotations);
    for (const body of checkBodies({ ...content, annotations: left })) {
      await client.rest.checks.update({
        owner,
        repo,
        check_run_id: id,
        ...body,
        actions: actionsOf(content),
        // Repeated by itself, it would add its annotations twice.
        ...(left.length > 0 && { request: { retries: 0 } }),
      });
    }
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
        ...checkBodies(content)[0],
        actions: actionsOf(content),
        request: { retries: 0 },
      });
      return data.id;
    },

    /** Writes the check run anew; annotations are added to those that it has, which are the first ones of the same. */
    update,
  };
}

function actionsOf({ actions = [] }: CheckContent) {
  return actions.map((action) => ({ ...action }));
}
