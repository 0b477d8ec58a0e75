import type { Annotation } from "../report/build-annotations.ts";
import { checkRunRequests, type CheckContent as Shown } from "../report/check-run-requests.ts";
import type { GitHubClient } from "./github-client.ts";

/** A button below a check run. */
export interface CheckRunAction {
  readonly identifier: string;
  /** At most 20 characters. */
  readonly label: string;
  /** At most 40 characters. */
  readonly description: string;
}

export interface CheckRunContent extends Omit<Shown, "annotations"> {
  readonly actions?: readonly CheckRunAction[];
}

/** The commit that check runs belong to. */
interface Commit {
  /** `owner/name`. */
  readonly repository: string;
  readonly sha: string;
}

interface CheckRunIdentity {
  readonly name: string;
  /** Tells the check run from all others of its name. */
  readonly externalId: string;
  readonly detailsUrl: string;
}

/** Writes check runs of one commit. */
export function createAppCheckRunWriter(client: GitHubClient, { repository, sha }: Commit) {
  const [owner = "", repo = ""] = repository.split("/");

  async function findByExternalId({
    name,
    externalId,
  }: CheckRunIdentity): Promise<number | undefined> {
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
  async function findUnwrittenAnnotations(
    id: number,
    annotations: readonly Annotation[],
  ): Promise<readonly Annotation[]> {
    if (annotations.length === 0) return annotations;
    const { data } = await client.rest.checks.get({ owner, repo, check_run_id: id });
    return annotations.slice(data.output.annotations_count);
  }

  async function updateWithAnnotations(
    id: number,
    content: CheckRunContent,
    annotations: readonly Annotation[] = [],
  ): Promise<void> {
    const left = await findUnwrittenAnnotations(id, annotations);
    for (const body of checkRunRequests({ ...content, annotations: left })) {
      await client.rest.checks.update({
        owner,
        repo,
        check_run_id: id,
        ...body,
        actions: actionsBody(content),
        // Repeated by itself, it would add its annotations twice.
        ...(left.length > 0 && { request: { retries: 0 } }),
      });
    }
  }

  return {
    /** Makes the check run, or writes the one that was made by a request whose answer was lost. */
    async createOrUpdate(identity: CheckRunIdentity, content: CheckRunContent): Promise<number> {
      const made = await findByExternalId(identity);
      if (made !== undefined) {
        await updateWithAnnotations(made, content);
        return made;
      }
      const { data } = await client.rest.checks.create({
        owner,
        repo,
        name: identity.name,
        head_sha: sha,
        external_id: identity.externalId,
        details_url: identity.detailsUrl,
        ...checkRunRequests(content)[0],
        actions: actionsBody(content),
        request: { retries: 0 },
      });
      return data.id;
    },

    /** Writes the check run anew; annotations are added to those that it has, which are the first ones of the same. */
    update: updateWithAnnotations,
  };
}

function actionsBody({ actions = [] }: CheckRunContent) {
  return actions.map((action) => ({ ...action }));
}
