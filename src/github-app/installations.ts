import type { KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { type GitHubClient, githubClient } from "./github-client.ts";

/** Who the service is at GitHub. */
export interface AppCredentials {
  readonly apiUrl: string;
  readonly appId: string;
  readonly key: KeyObject;
}

interface Access {
  readonly client: GitHubClient;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** An installation's token lives an hour; it is renewed before. */
const renewMs = 5 * 60_000;

/** Access to the repositories in which the app is installed. GitHub's clock is this machine's. */
export class Installations {
  readonly #app: AppCredentials;
  readonly #accesses = new Map<string, Access>();

  constructor(app: AppCredentials) {
    this.#app = app;
  }

  /** A client that may write check runs in the repository. */
  async client(repository: string): Promise<GitHubClient> {
    const known = this.#accesses.get(repository);
    if (known && known.until - renewMs > Date.now()) return known.client;
    const [owner = "", repo = ""] = repository.split("/");
    const { apiUrl, appId } = this.#app;
    const app = githubClient({ apiUrl, auth: await this.#sign(), pacedAs: `app ${appId}` });
    const { data: installation } = await app.rest.apps.getRepoInstallation({ owner, repo });
    const { data } = await app.rest.apps.createInstallationAccessToken({ installation_id: installation.id });
    const client = githubClient({ apiUrl, auth: data.token, pacedAs: `installation ${installation.id}` });
    this.#accesses.set(repository, { client, until: Date.parse(data.expires_at) });
    return client;
  }

  /** What was known of the repository is asked for anew. */
  forget(repository: string): void {
    this.#accesses.delete(repository);
  }

  /** GitHub takes such a token for ten minutes, and its clock may be behind. */
  async #sign(): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT()
      .setProtectedHeader({ alg: "RS256" })
      .setIssuer(this.#app.appId)
      .setIssuedAt(now - 60)
      .setExpirationTime(now + 540)
      .sign(this.#app.key);
  }
}
