import type { Octokit } from "@octokit/rest";
import {
  type CheckRunContent,
  checkRunRequests,
  type RepositoryName,
} from "./check-run-requests.ts";
import { retry } from "../limits/retry.ts";

/** The methods of an Octokit that write check runs. */
interface ChecksClient {
  readonly rest: {
    readonly checks: Pick<Octokit["rest"]["checks"], "create" | "get" | "listForRef" | "update">;
  };
}

export interface CheckRunIdentity {
  readonly name: string;
  /** Unique among the check runs of the same name and commit. */
  readonly externalId: string;
  readonly detailsUrl: string;
}

interface CheckRunWriterOptions {
  readonly repo: RepositoryName;
  /** The commit that the check runs belong to. */
  readonly headSha: string;
  /** Tries of a request that Octokit must not repeat, as it would write twice. */
  readonly maxTries: number;
}

type CreateRequest = ReturnType<typeof checkRunRequests>[number];

const firstPauseMs = 1_000;

/**
 * Writes check runs of one commit. A request whose answer was lost creates no second check run and
 * adds no annotation twice.
 */
export class CheckRunWriter {
  readonly #checks: ChecksClient["rest"]["checks"];
  readonly #options: CheckRunWriterOptions;

  constructor(client: ChecksClient, options: CheckRunWriterOptions) {
    this.#checks = client.rest.checks;
    this.#options = options;
  }

  /** Creates the check run and gives its id. */
  async create(identity: CheckRunIdentity, content: CheckRunContent): Promise<number> {
    const [first, ...others] = checkRunRequests(content);
    const { maxTries } = this.#options;
    let isRepeated = false;
    const id = await repeatUnanswered(maxTries, async () => {
      const existing = isRepeated ? await this.#find(identity) : undefined;
      isRepeated = true;
      return existing ?? (await this.#createOnce(identity, first));
    });
    if (others.length > 0) await this.update(id, content);
    return id;
  }

  /** As `create`, for a check run that an earlier process may have created. */
  async createOrUpdate(identity: CheckRunIdentity, content: CheckRunContent): Promise<number> {
    const existing = await this.#find(identity);
    if (existing === undefined) return this.create(identity, content);
    await this.update(existing, content);
    return existing;
  }

  /** Replaces the content; the first annotations are those that the check run may already have. */
  async update(id: number, content: CheckRunContent): Promise<void> {
    const { annotations = [] } = content;
    if (annotations.length === 0) return this.#send(id, content);
    const { repo, maxTries } = this.#options;
    await repeatUnanswered(maxTries, async () => {
      const { data } = await this.#checks.get({ ...repo, check_run_id: id });
      const missing = annotations.slice(data.output.annotations_count);
      await this.#send(id, { ...content, annotations: missing }, { retries: 0 });
    });
  }

  async #createOnce(
    { name, externalId, detailsUrl }: CheckRunIdentity,
    body: CreateRequest | undefined,
  ): Promise<number> {
    const { repo, headSha } = this.#options;
    const { data } = await this.#checks.create({
      ...repo,
      name,
      head_sha: headSha,
      external_id: externalId,
      details_url: detailsUrl,
      ...body,
      request: { retries: 0 },
    });
    return data.id;
  }

  async #find({ name, externalId }: CheckRunIdentity): Promise<number | undefined> {
    const { repo, headSha } = this.#options;
    const { data } = await this.#checks.listForRef({
      ...repo,
      ref: headSha,
      check_name: name,
      filter: "all",
      per_page: 100,
    });
    return data.check_runs.find(({ external_id }) => external_id === externalId)?.id;
  }

  async #send(id: number, content: CheckRunContent, request = {}): Promise<void> {
    for (const body of checkRunRequests(content)) {
      await this.#checks.update({ ...this.#options.repo, check_run_id: id, ...body, request });
    }
  }
}

/**
 * Repeats work that GitHub failed to answer, with pauses as Octokit makes. The work itself looks
 * for what an earlier try may have written.
 */
export async function repeatUnanswered<T>(maxTries: number, work: () => Promise<T>): Promise<T> {
  return retry(work, (error, tries) => {
    const isTransient = (httpErrorStatus(error) ?? 0) >= 500;
    return isTransient && tries < maxTries ? firstPauseMs * tries ** 2 : undefined;
  });
}

/**
 * The HTTP status of an error of Octokit, which is 500 without an answer of GitHub; undefined for
 * any other error.
 */
export function httpErrorStatus(error: unknown): number | undefined {
  return error instanceof Error && "status" in error && typeof error.status === "number"
    ? error.status
    : undefined;
}
