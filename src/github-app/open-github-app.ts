import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import { findMergedCommit } from "./find-merged-commit.ts";
import { type AppCredentials, Installations } from "./installations.ts";
import { startReportLoop } from "./report-loop.ts";
import type { SubmitRerun } from "./rerun-jobs.ts";
import { createWebhookReceiver, type WebhookEvent } from "./webhook-receiver.ts";

export interface GitHubAppOptions extends AppCredentials {
  /** Address of the service for links in check runs, with `/v1`. */
  readonly publicUrl: string;
  /** The key of the events' signatures; without it check runs have no buttons. */
  readonly webhookSecret?: string | undefined;
}

interface GitHubAppDependencies {
  readonly records: Records;
  readonly submit: SubmitRerun;
  readonly log: Log;
}

export interface GitHubApp {
  /** Where people see GitHub, without a path. */
  readonly webUrl: string;
  /** Processes an event of GitHub; undefined where signatures cannot be verified. */
  readonly receive: ((event: WebhookEvent) => Promise<void>) | undefined;
  /**
   * The commit that GitHub merged for a pull request to make the given one; undefined where that is
   * no such merge, or in a repository without the app.
   * @throws ServiceError unavailable
   */
  findMergedCommit(repository: string, mergeCommit: string): Promise<string | undefined>;
  /** Stops. Reports that are open are continued after the next start. */
  close(): Promise<void>;
}

/** Keeps check runs up to date as a GitHub App, and performs the actions of their buttons. */
export function openGitHubApp(
  app: GitHubAppOptions,
  { records, submit, log }: GitHubAppDependencies,
): GitHubApp {
  const { appId, publicUrl, webhookSecret } = app;
  const receive =
    webhookSecret === undefined
      ? undefined
      : createWebhookReceiver({ appId, webhookSecret, publicUrl, records, submit, log });
  const installations = new Installations(app);
  const hasActions = receive !== undefined;
  const loop = startReportLoop({ records, installations, publicUrl, hasActions, log });
  return {
    webUrl: findWebUrl(app.apiUrl),
    receive,
    findMergedCommit: async (repository, mergeCommit) =>
      findMergedCommit(installations, repository, mergeCommit),
    close: async () => loop.stop(),
  };
}

/** An enterprise server has its API under the address that people open. */
function findWebUrl(apiUrl: string): string {
  const { origin, host } = new URL(apiUrl);
  return host === "api.github.com" ? "https://github.com" : origin;
}
