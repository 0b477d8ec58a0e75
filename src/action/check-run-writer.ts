import { setTimeout as delay } from "node:timers/promises";
import { checkRunRequests, type CheckContent } from "../report/check-run-requests.ts";
import { type GitHub, httpErrorStatus } from "./connect-github.ts";

const maxTries = 4;
const firstPauseMs = 1_000;

interface CheckSuite {
  /** `owner/name`. */
  readonly repository: string;
  readonly headSha: string;
  readonly detailsUrl: string;
}

interface CheckIdentity {
  readonly name: string;
  /** Tells the check run from those of other runs. */
  readonly externalId: string;
}

export type CheckRunWriter = ReturnType<typeof createCheckRunWriter>;

/** Writes check runs of one commit. */
export function createCheckRunWriter(
  github: GitHub,
  { repository, headSha, detailsUrl }: CheckSuite,
) {
  const [owner = "", repo = ""] = repository.split("/");

  async function create(identity: CheckIdentity, content: CheckContent): Promise<number> {
    const [first, ...others] = checkRunRequests(content);
    const id = await createWithoutDuplicate(identity, first);
    if (others.length > 0) await updateWithRetries(id, content, first?.output.annotations.length);
    return id;
  }

  /** An answer that was lost may leave a check run, which must not be made again. */
  async function createWithoutDuplicate(
    { name, externalId }: CheckIdentity,
    body: ReturnType<typeof checkRunRequests>[number] | undefined,
  ): Promise<number> {
    const identity = {
      owner,
      repo,
      name,
      head_sha: headSha,
      external_id: externalId,
      details_url: detailsUrl,
    };
    for (let left = maxTries - 1; ; left--) {
      try {
        const { data } = await github.rest.checks.create({
          ...identity,
          ...body,
          request: { retries: 0 },
        });
        return data.id;
      } catch (error) {
        if ((httpErrorStatus(error) ?? 0) < 500 || left === 0) throw error;
      }
      await delay(firstPauseMs * (maxTries - left) ** 2);
      const made = await findCheckRun({ name, externalId });
      if (made !== undefined) return made;
    }
  }

  async function findCheckRun({ name, externalId }: CheckIdentity): Promise<number | undefined> {
    const { data } = await github.rest.checks.listForRef({
      owner,
      repo,
      ref: headSha,
      check_name: name,
      filter: "all",
    });
    return data.check_runs.find(({ external_id }) => external_id === externalId)?.id;
  }

  /** An update whose answer was lost may have added its annotations: only those that the check run lacks are sent again. */
  async function updateWithRetries(
    id: number,
    content: CheckContent,
    annotationsSent = 0,
  ): Promise<void> {
    const { annotations = [] } = content;
    let sent = annotationsSent;
    for (let left = maxTries - 1; ; left--) {
      try {
        await updateOnce(id, { ...content, annotations: annotations.slice(sent) });
        return;
      } catch (error) {
        if ((httpErrorStatus(error) ?? 0) < 500 || left === 0) throw error;
      }
      await delay(firstPauseMs * (maxTries - left) ** 2);
      const { data } = await github.rest.checks.get({ owner, repo, check_run_id: id });
      sent = data.output.annotations_count;
    }
  }

  async function updateOnce(id: number, content: CheckContent): Promise<void> {
    for (const body of checkRunRequests(content)) {
      await github.rest.checks.update({
        owner,
        repo,
        check_run_id: id,
        ...body,
        request: { retries: 0 },
      });
    }
  }

  return { create, update: updateWithRetries };
}
