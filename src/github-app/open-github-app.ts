import { setTimeout as delay } from "node:timers/promises";
import { findWebUrl, isIssuerOf } from "./github-addresses.ts";
import { type AppCredentials, Installations, type NumberedRepository } from "./github-client.ts";
import { findMergedCommit, Publication, type PublicationContext } from "./publication.ts";
import { createWebhookReceiver, type SubmitRerun, type WebhookEvent } from "./webhook-receiver.ts";
import type { Log } from "../log/json-log.ts";
import { whileLeading } from "../records/database/while-leading.ts";
import type { Records } from "../records/open-records.ts";

export interface GitHubAppOptions extends AppCredentials {
  /** Address of the service for links in check runs, without `/v1`. */
  readonly publicUrl: string;
  /** The key of the events' signatures; without it check runs have no buttons. */
  readonly webhookSecret?: string | undefined;
}

export interface GitHubApp {
  /** Where people see GitHub, without a path. */
  readonly webUrl: string;
  /** Whether an issuer is that of this GitHub's workflows: numbers of others are others' repositories. */
  isIssuer(this: void, issuer: string): boolean;
  /** Processes an event of GitHub; undefined where signatures cannot be verified. */
  readonly receive: ((event: WebhookEvent) => Promise<void>) | undefined;
  /**
   * The commit that GitHub merged for a pull request to make the given one; undefined where that is
   * no such merge, or in a repository without the app.
   * @throws ServiceError unavailable
   */
  findMergedCommit(repository: NumberedRepository, commit: string): Promise<string | undefined>;
  /** Stops. Reports that are open are continued after the next start. */
  close(): Promise<void>;
}

/** Keeps check runs up to date as a GitHub App, and performs the actions of their buttons. */
export function openGitHubApp(
  app: GitHubAppOptions,
  { records, submit, log }: { records: Records; submit: SubmitRerun; log: Log },
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
    isIssuer: (issuer) => isIssuerOf(app.apiUrl, issuer),
    receive,
    findMergedCommit: async (repository, mergeCommit) =>
      findMergedCommit(installations, repository, mergeCommit),
    close: async () => loop.stop(),
  };
}

/** Changes within it are published together. */
const coalesceMs = 1_000;
/** Failed publications are tried again without a change. */
const recheckMs = 3_000;
const closeTimeoutMs = 2_000;

/**
 * Publishes all open reports after each change, and at intervals, until it is stopped. Of several
 * replicas the leader does.
 */
function startReportLoop(context: PublicationContext): { stop(): Promise<void> } {
  const { records, log } = context;
  const publications = new OpenPublications(context);
  const publishDue = async (signal: AbortSignal) => {
    await delay(coalesceMs, undefined, { signal, ref: false }).catch(() => {});
    if (!signal.aborted) await publications.startDue(signal);
  };
  const loop = whileLeading(records.replica, publishDue, {
    everyMs: recheckMs,
    wakeOn: (wake) => records.changes.on("changed", wake),
    onError: (error) => log("error", "Reports cannot be read", { error }),
  });
  return {
    async stop() {
      await loop[Symbol.asyncDispose]();
      await Promise.race([publications.settled(), delay(closeTimeoutMs)]);
    },
  };
}

/** The publications of all open reports. */
class OpenPublications {
  readonly #context: PublicationContext;
  readonly #byReport = new Map<string, Publication>();
  readonly #running = new Set<Promise<void>>();

  constructor(context: PublicationContext) {
    this.#context = context;
  }

  async startDue(signal: AbortSignal): Promise<void> {
    const open = await this.#context.records.reports.listOpen();
    this.#dropClosed(new Set(open.map(({ id }) => id)));
    for (const report of open) {
      const publication = this.#byReport.get(report.id) ?? new Publication(this.#context);
      this.#byReport.set(report.id, publication);
      if (!publication.isDue) continue;
      const work = publication.publish(report, signal).finally(() => this.#running.delete(work));
      this.#running.add(work);
    }
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  #dropClosed(open: ReadonlySet<string>): void {
    for (const [id, { isBusy }] of this.#byReport) {
      if (!open.has(id) && !isBusy) this.#byReport.delete(id);
    }
  }
}
