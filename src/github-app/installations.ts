import type { KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { parseRepository } from "../github/parse-repository.ts";
import { type GitHubClient, createGitHubClient } from "./github-client.ts";

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

/** Access to the repositories in which the app is installed. */
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
    const access = await this.#requestAccess(repository);
    this.#accessByRepository.set(repository, access);
    return access.client;
  }

  /** Drops what is cached of the repository. */
  invalidate(repository: string): void {
    this.#accessByRepository.delete(repository);
  }

  async #requestAccess(repository: string): Promise<InstallationAccess> {
    const { apiUrl, appId } = this.#app;
    const auth = await this.#signAppToken();
    const app = createGitHubClient({ apiUrl, auth, throttleId: `app ${appId}` });
    const repo = parseRepository(repository);
    const installation = await app.rest.apps.getRepoInstallation({ ...repo });
    const { id } = installation.data;
    const { data } = await app.rest.apps.createInstallationAccessToken({ installation_id: id });
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
