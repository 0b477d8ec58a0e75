import { httpErrorStatus } from "../github/http-error-status.ts";
import type { Log } from "../log/json-log.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import type { Installations } from "./installations.ts";
import { publishReport } from "./publish-report.ts";

export interface PublicationContext {
  readonly records: Records;
  readonly installations: Installations;
  /** Address of the service for links, with `/v1`. */
  readonly publicUrl: string;
  /** Whether check runs get buttons. */
  readonly hasActions: boolean;
  readonly log: Log;
}

const firstRetryDelayMs = 2_000;
const maxRetryDelayMs = 300_000;
/** With the longest delays, about a day. */
const maxFailures = 300;
/** Between two updates of a check run that is in progress. */
const progressIntervalMs = 10_000;

/** Publishes one report until it is closed. Times are of `performance.now()`. */
export class Publication {
  readonly #context: PublicationContext;
  #isBusy = false;
  #failures = 0;
  #notBefore = 0;
  #progressAt = -Infinity;

  constructor(context: PublicationContext) {
    this.#context = context;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Whether the report can be published now: it is not, and no failure delays it. */
  get isDue(): boolean {
    return !this.#isBusy && this.#notBefore <= performance.now();
  }

  /** Publishes the report as it is now. A failure is logged and delays the next try. */
  async publish(report: ReportRecord, signal: AbortSignal): Promise<void> {
    const { installations, log: _, ...context } = this.#context;
    this.#isBusy = true;
    const withProgress = performance.now() - this.#progressAt >= progressIntervalMs;
    if (withProgress) this.#progressAt = performance.now();
    try {
      const client = await installations.getClient(report.settings.repository);
      await publishReport(report, { ...context, client, withProgress, signal });
      this.#failures = 0;
    } catch (error) {
      if (!signal.aborted) await this.#recordFailure(report, error);
    } finally {
      this.#isBusy = false;
    }
  }

  async #recordFailure(report: ReportRecord, error: unknown): Promise<void> {
    const { installations, log } = this.#context;
    const { repository } = report.settings;
    installations.invalidate(repository);
    const retryDelayMs = Math.min(maxRetryDelayMs, firstRetryDelayMs * 2 ** this.#failures);
    this.#failures++;
    this.#notBefore = performance.now() + retryDelayMs;
    const isAbandoned = isPermanentError(error) || this.#failures >= maxFailures;
    log("error", isAbandoned ? "A report is given up" : "GitHub does not take a report", {
      report: report.id,
      repository,
      error,
    });
    if (isAbandoned) await this.#closeReport(report);
  }

  async #closeReport(report: ReportRecord): Promise<void> {
    const { records, log } = this.#context;
    await records.reports
      .close(report)
      .catch((error: unknown) => log("error", "A report cannot be closed", { error }));
  }
}

/** Whether GitHub answers the same to every later try. */
function isPermanentError(error: unknown): boolean {
  return [404, 410, 422].includes(httpErrorStatus(error) ?? 0);
}
