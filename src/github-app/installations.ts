import type { KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { type GitHubClient, createGitHubClient } from "./github-client.ts";

/** Who the service is at GitHub. */
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

/** An installation's token lives an hour; it is renewed before. */
const renewBeforeExpiryMs = 5 * 60_000;

/** Access to the repositories in which the app is installed. GitHub's clock is this machine's. */
export class Installations {
  readonly #app: AppCredentials;
  readonly #accessByRepository = new Map<string, InstallationAccess>();

  constructor(app: AppCredentials) {
    this.#app = app;
  }

  /** A client that may write check runs in the repository. */
  async getClient(repository: string): Promise<GitHubClient> {
    const known = this.#accessByRepository.get(repository);
    if (known && known.expiresAt - renewBeforeExpiryMs > Date.now()) return known.client;
    const [owner = "", repo = ""] = repository.split("/");
    const { apiUrl, appId } = this.#app;
    const app = createGitHubClient({
      apiUrl,
      auth: await this.#signAppToken(),
      throttleId: `app ${appId}`,
    });
    const { data: installation } = await app.rest.apps.getRepoInstallation({ owner, repo });
    const { data } = await app.rest.apps.createInstallationAccessToken({
      installation_id: installation.id,
    });
    const client = createGitHubClient({
      apiUrl,
      auth: data.token,
      throttleId: `installation ${installation.id}`,
    });
    this.#accessByRepository.set(repository, { client, expiresAt: Date.parse(data.expires_at) });
    return client;
  }

  /** What was known of the repository is asked for anew. */
  invalidate(repository: string): void {
    this.#accessByRepository.delete(repository);
  }

  /** GitHub takes such a token for ten minutes, and its clock may be behind. */
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
