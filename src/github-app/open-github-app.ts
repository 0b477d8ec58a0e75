import type { Log } from "../log/json-log.ts";
import type { Records } from "../records/open-records.ts";
import { type AppCredentials, Installations } from "./installations.ts";
import { startReportLoop } from "./report-loop.ts";
import type { SubmitRerun } from "./rerun-jobs.ts";
import { createWebhookReceiver, type WebhookEvent } from "./webhook-receiver.ts";

export interface GitHubAppOptions extends AppCredentials {
  /** The key of the events' signatures; without it check runs have no buttons. */
  readonly webhookSecret?: string | undefined;
}

interface GitHubAppDependencies {
  readonly records: Records;
  readonly submit: SubmitRerun;
  readonly log: Log;
}

export interface GitHubApp {
  /** Processes an event of GitHub; undefined where signatures cannot be verified. */
  readonly receive: ((event: WebhookEvent) => Promise<void>) | undefined;
  /** Stops. Reports that are open are continued after the next start. */
  close(): Promise<void>;
}

/** Keeps check runs up to date as a GitHub App, and performs the actions of their buttons. */
export function openGitHubApp(
  app: GitHubAppOptions,
  { records, submit, log }: GitHubAppDependencies,
): GitHubApp {
  const { appId, webhookSecret } = app;
  const receive =
    webhookSecret === undefined
      ? undefined
      : createWebhookReceiver({ appId, webhookSecret, records, submit, log });
  const installations = new Installations(app);
  const loop = startReportLoop({ records, installations, hasActions: receive !== undefined, log });
  return { receive, close: async () => loop.stop() };
}
