import { createHash } from "node:crypto";
import { checkRunActions } from "./check-run-actions.ts";
import type { GitHubClient, Installations, NumberedRepository } from "./github-client.ts";
import { ServiceError } from "../contract/errors.ts";
import { hasFailedGate } from "../contract/jobs/gate.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal } from "../contract/jobs/status.ts";
import { batchAddress } from "../contract/page-addresses.ts";
import { batchCheckName, jobCheckRun, parseRepository } from "../github/check-run-requests.ts";
import { CheckRunWriter, httpErrorStatus } from "../github/check-run-writer.ts";
import type { Log } from "../log/json-log.ts";
import type { ReportRecord } from "../records/jobs/insert-report.ts";
import type { Records } from "../records/open-records.ts";
import { buildAnnotations } from "../report/build-annotations.ts";
import { conclude, isJobCheckWanted, maxJobChecks, type Verdict } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import {
  type CheckOutput,
  type EndedRow,
  isEndedRow,
  jobLinks,
  type ReportRow,
} from "../report/report.ts";

export interface PublicationContext {
  readonly records: Records;
  readonly installations: Installations;
  /** Address of the service for links, without `/v1`. */
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
      const client = await installations.getClient(report.settings);
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
    installations.invalidate(report.settings);
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

/**
 * Writes what the check runs of a report lack. Every write is recorded, so that it can stop at any
 * time.
 */
async function publishReport(
  report: ReportRecord,
  options: {
    readonly records: Records;
    readonly client: GitHubClient;
    /** Address of the service for links, without `/v1`. */
    readonly publicUrl: string;
    /** Whether check runs get buttons. */
    readonly hasActions: boolean;
    /** Whether an update of the progress is due. */
    readonly withProgress: boolean;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { records, publicUrl, hasActions, withProgress, signal } = options;
  const checks = createWriter(report, options.client);
  const rows = await loadReportRows(records, report, publicUrl);
  const verdict = concludeReport(report, rows);
  const { conclusion } = verdict;
  const name = reportCheckName(report);
  const url = `${publicUrl}${batchAddress(report.id)}`;
  const render = (shown: Verdict) => renderBatchCheck({ name, url, rows }, shown);
  let { checkRun } = report;
  if (checkRun === null || (conclusion === null && withProgress)) {
    const output = render({ ...verdict, conclusion: null });
    checkRun = await publishProgress(report, output, { records, checks, url });
  }
  await publishJobChecks(report, rows.filter(isEndedRow), { records, checks, signal });
  if (conclusion === null || signal.aborted) return;
  if (!(await records.reports.beginConclusion(report))) return;
  const actions = hasActions ? checkRunActions(report, rows) : [];
  const { places } = report.settings;
  const annotations = places ? buildAnnotations(rows, places) : [];
  await checks.update(checkRun, { output: render(verdict), conclusion, actions, annotations });
  await records.reports.close(report);
}

/** A write that fails is tried again by the report loop. */
function createWriter({ settings }: ReportRecord, client: GitHubClient): CheckRunWriter {
  const repo = parseRepository(settings.repository);
  return new CheckRunWriter(client, { repo, headSha: settings.sha, maxTries: 1 });
}

/** Gates do not fail a report whose results were accepted. */
function concludeReport(
  { settings: { failOn }, isAccepted }: ReportRecord,
  rows: readonly ReportRow[],
): Verdict {
  return conclude({ rows }, isAccepted && failOn !== "nothing" ? "jobs" : failOn);
}

/** Writes the check run of the batch in progress, where that changes, and gives its number. */
async function publishProgress(
  report: ReportRecord,
  output: CheckOutput,
  { records, checks, url }: { records: Records; checks: CheckRunWriter; url: string },
): Promise<number> {
  const { id, round } = report;
  const contentHash = createHash("sha256").update(JSON.stringify(output)).digest("hex");
  let { checkRun } = report;
  if (checkRun !== null && contentHash === report.contentHash) return checkRun;
  if (checkRun === null) {
    const name = reportCheckName(report);
    const identity = { name, externalId: `${id}/${round}`, detailsUrl: url };
    checkRun = await checks.createOrUpdate(identity, { output });
  } else {
    await checks.update(checkRun, { output });
  }
  await records.reports.recordCheckRun(report, { checkRun, contentHash });
  return checkRun;
}

interface JobCheckOptions {
  readonly records: Records;
  readonly checks: CheckRunWriter;
  readonly signal: AbortSignal;
}

/** Last lines of a job's output that its check run shows. */
const logTailLines = 100;

/** Creates the jobs' own check runs that are wanted and not recorded. */
async function publishJobChecks(
  report: ReportRecord,
  rows: readonly EndedRow[],
  options: JobCheckOptions,
): Promise<void> {
  const { jobChecks } = report.settings;
  const jobCount = report.jobIds.length;
  const created = new Set(await options.records.reports.listCheckedJobs(report));
  for (const row of rows) {
    if (created.size >= maxJobChecks || options.signal.aborted) return;
    if (created.has(row.id) || !isJobCheckWanted(row, { jobChecks, jobCount })) continue;
    await publishJobCheck(report, row, options);
    created.add(row.id);
  }
}

async function publishJobCheck(
  report: ReportRecord,
  row: EndedRow,
  { records, checks }: JobCheckOptions,
): Promise<void> {
  const entries = await records.logs.tail(row.id, logTailLines);
  const lines = entries.map(({ text }) => text);
  const { name, content } = jobCheckRun(row, lines, {
    checkName: reportCheckName(report),
    failOn: report.settings.failOn,
  });
  const identity = { name, externalId: row.id, detailsUrl: row.url };
  await checks.createOrUpdate(identity, content);
  await records.reports.recordJobCheck(report, row.id);
}

/** The jobs of a report as they are now. */
export async function loadReportRows(
  { reports }: Pick<Records, "reports">,
  report: ReportRecord,
  publicUrl: string,
): Promise<ReportRow[]> {
  const jobs = await reports.listJobs(report);
  return jobs.map((job) => jobRow(job, publicUrl));
}

function jobRow(job: Job, publicUrl: string): ReportRow {
  const { id, model, target, status } = job;
  return {
    id,
    model: model.name,
    target,
    status,
    gatesFailed: hasFailedGate(job.gates),
    ...jobLinks(publicUrl, id),
    job: isTerminal(status) ? job : undefined,
  };
}

/** The name of a report's check run. */
export function reportCheckName({ settings, request }: ReportRecord): string {
  return batchCheckName(settings.checkName, request.dryRun);
}

/**
 * The commit that GitHub merged into the base of a pull request to make the given one; undefined
 * where that is not such a merge, or in a repository without the app.
 * @throws ServiceError unavailable
 */
export async function findMergedCommit(
  installations: Installations,
  repository: NumberedRepository,
  mergeCommit: string,
): Promise<string | undefined> {
  try {
    const client = await installations.getClient(repository);
    const { data } = await client.rest.git.getCommit({
      ...parseRepository(repository.repository),
      commit_sha: mergeCommit,
      request: { retries: 0 },
    });
    const [, merged, ...others] = data.parents;
    return others.length === 0 ? merged?.sha : undefined;
  } catch (cause) {
    if ([403, 404, 409, 422].includes(httpErrorStatus(cause) ?? 0)) return undefined;
    const headers = { "retry-after": "5" };
    const message = "GitHub does not say which commit the pull request has";
    throw new ServiceError("unavailable", message, { cause, headers });
  }
}
