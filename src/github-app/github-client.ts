import type { KeyObject } from "node:crypto";
import { retry } from "@octokit/plugin-retry";
import { throttling } from "@octokit/plugin-throttling";
import { Octokit } from "@octokit/rest";
import { SignJWT } from "jose";
import { parseRepository } from "../github/check-run-requests.ts";

/** Longest wait for a rate limit; the report loop tries again later. */
const maxRateLimitWaitSeconds = 60;
const ignore = () => {};
const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

interface GitHubConnection {
  readonly apiUrl: string;
  readonly auth: string;
  /** Clients with the same id share the pace that GitHub asks for: one write a second. */
  readonly throttleId: string;
}

export type GitHubClient = ReturnType<typeof createGitHubClient>;

/** An Octokit that repeats failed requests and keeps to GitHub's rate limits. */
function createGitHubClient({ apiUrl, auth, throttleId }: GitHubConnection) {
  const mayWait = (seconds: number, _: unknown, __: unknown, waits: number) =>
    seconds <= maxRateLimitWaitSeconds && waits < 1;
  const Client = Octokit.plugin(retry, throttling);
  return new Client({
    auth,
    baseUrl: apiUrl.replace(/\/+$/, ""),
    userAgent: "model-optimization-service",
    log,
    throttle: { id: throttleId, onRateLimit: mayWait, onSecondaryRateLimit: mayWait },
  });
}

/** The identity of the GitHub App. */
export interface AppCredentials {
  readonly apiUrl: string;
  readonly appId: string;
  readonly key: KeyObject;
}

interface InstallationAccess {
  readonly client: GitHubClient;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** An installation's token is valid for an hour. */
const renewBeforeExpiryMs = 5 * 60_000;

/** A repository by its name, which can change hands, and where it is known by its number. */
export interface NumberedRepository {
  readonly repository: string;
  readonly repositoryNumber?: number | undefined;
}

/** Access to the repositories in which the app is installed. */
export class Installations {
  readonly #app: AppCredentials;
  readonly #accesses = new Map<string, InstallationAccess>();

  constructor(app: AppCredentials) {
    this.#app = app;
  }

  /**
   * A client that may write check runs in the repository: where its number is known GitHub refuses
   * another one that has its name.
   */
  async getClient(repository: NumberedRepository): Promise<GitHubClient> {
    const key = accessKey(repository);
    const known = this.#accesses.get(key);
    if (known && known.expiresAt - renewBeforeExpiryMs > Date.now()) return known.client;
    const access = await this.#requestAccess(repository);
    this.#accesses.set(key, access);
    return access.client;
  }

  /** Drops what is cached of the repository. */
  invalidate(repository: NumberedRepository): void {
    this.#accesses.delete(accessKey(repository));
  }

  async #requestAccess({
    repository,
    repositoryNumber: number,
  }: NumberedRepository): Promise<InstallationAccess> {
    const { apiUrl, appId } = this.#app;
    const auth = await this.#signAppToken();
    const app = createGitHubClient({ apiUrl, auth, throttleId: `app ${appId}` });
    const repo = parseRepository(repository);
    const installation = await app.rest.apps.getRepoInstallation({ ...repo });
    const { id } = installation.data;
    const { data } = await app.rest.apps.createInstallationAccessToken({
      installation_id: id,
      ...(number === undefined ? {} : { repository_ids: [number] }),
    });
    const throttleId = `installation ${id}`;
    const client = createGitHubClient({ apiUrl, auth: data.token, throttleId });
    return { client, expiresAt: Date.parse(data.expires_at) };
  }

  /** GitHub accepts such a token for ten minutes, and its clock may be behind. */
  async #signAppToken(): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT()
      .setProtectedHeader({ alg: "RS256" })
      .setIssuer(this.#app.appId)
      .setIssuedAt(now - 60)
      .setExpirationTime(now + 540)
      .sign(this.#app.key);
  }
}

function accessKey({ repository, repositoryNumber = 0 }: NumberedRepository): string {
  return `${repository} ${repositoryNumber}`;
}
