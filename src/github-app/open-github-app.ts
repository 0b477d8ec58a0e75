import type { Records } from "../records/open-records.ts";
import { type AppCredentials, Installations } from "./installations.ts";
import type { Log } from "../log/json-log.ts";
import { createWebhookReceiver, type WebhookEvent } from "./webhook-receiver.ts";
import type { SubmitRerun } from "./rerun-jobs.ts";
import { startReportLoop } from "./report-loop.ts";

export interface GitHubAppOptions extends AppCredentials {
  /** What GitHub signs events with; without it check runs have no buttons. */
  readonly webhookSecret?: string | undefined;
}

interface GitHubAppDependencies {
  readonly records: Records;
  readonly submit: SubmitRerun;
  readonly log: Log;
}

export interface GitHubApp {
  /** Takes events that GitHub delivers; undefined where they cannot be told from others'. */
  readonly receive: ((event: WebhookEvent) => Promise<void>) | undefined;
  /** What is left to tell is told after the next start. */
  close(): Promise<void>;
}

/** Keeps check runs up to date as a GitHub App, and does what their buttons ask for. */
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
