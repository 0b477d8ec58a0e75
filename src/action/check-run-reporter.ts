import * as core from "@actions/core";
import type { GitHub } from "./connect-github.ts";
import type { WorkflowRun } from "./workflow-run.ts";
import type { FailOn, JobChecks } from "../contract/batches/action.ts";
import { jobCheckRun } from "../github/check-run-requests.ts";
import {
  type CheckRunIdentity,
  CheckRunWriter,
  httpErrorStatus,
} from "../github/check-run-writer.ts";
import { errorMessage } from "../log/error-message.ts";
import type { Annotation } from "../report/build-annotations.ts";
import { conclude, isJobCheckWanted, maxJobChecks, type Verdict } from "../report/conclude.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import type { EndedRow, Report } from "../report/report.ts";

const progressIntervalMs = 10_000;
/** Pause of the progress after a write that failed: what a limit leaves is for the last write. */
const pauseMs = 300_000;

interface ReporterOptions {
  readonly checks: CheckRunWriter;
  /** The check run of the whole batch. */
  readonly check: CheckRunIdentity;
  readonly jobChecks: JobChecks;
  readonly failOn: FailOn;
}

/**
 * Keeps the check runs of a batch and of its jobs up to date. A write that fails is logged, and is
 * the last one only where the token may write none.
 */
export class CheckRunReporter {
  readonly #options: ReporterOptions;
  #checkRun: number | undefined;
  #isForbidden = false;
  #isInterrupted = false;
  #jobCheckCount = 0;
  #progressAt = 0;
  #lastOutput = "";
  #writes = Promise.resolve(true);

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  begin(report: Report): void {
    const { checks, check } = this.#options;
    void this.#write(async () => {
      const output = renderBatchCheck(report, { conclusion: null, title: "Preparing the batch" });
      this.#checkRun = await checks.create(check, { output });
      core.saveState("checkRun", String(this.#checkRun));
    });
  }

  /** Updates the batch's check run at intervals, where it changes. */
  reportProgress(report: Report): void {
    const { checks, failOn } = this.#options;
    const now = performance.now();
    if (now - this.#progressAt < progressIntervalMs) return;
    this.#progressAt = now;
    const output = renderBatchCheck(report, conclude(report, failOn));
    if (JSON.stringify(output) === this.#lastOutput) return;
    this.#lastOutput = JSON.stringify(output);
    void this.#write(async () => {
      if (this.#isInterrupted || this.#checkRun === undefined) return;
      await checks.update(this.#checkRun, { output });
    });
  }

  /** Creates the job's own check run, where one is wanted. */
  reportJobEnd(row: EndedRow, lastLines: readonly string[], jobCount: number): void {
    const { checks, check, failOn, jobChecks } = this.#options;
    const isWanted = isJobCheckWanted(row, { jobChecks, jobCount });
    if (!isWanted || this.#jobCheckCount === maxJobChecks) return;
    this.#jobCheckCount++;
    void this.#write(async () => {
      if (this.#isInterrupted) return;
      const { name, content } = jobCheckRun(row, lastLines, { checkName: check.name, failOn });
      const externalId = `${check.externalId}/${row.id}`;
      await checks.create({ name, externalId, detailsUrl: row.url }, content);
    });
  }

  /** Gives whether the check run of the batch is complete, annotations included. */
  async complete(
    report: Report,
    verdict: Verdict,
    annotations: readonly Annotation[],
  ): Promise<boolean> {
    const { checks, check } = this.#options;
    // A cancelled step has no time for the writes that are queued.
    this.#isInterrupted = report.abortReason !== undefined;
    return this.#write(async () => {
      const output = renderBatchCheck(report, verdict);
      const content = { output, conclusion: verdict.conclusion ?? "neutral", annotations };
      if (this.#checkRun === undefined) await checks.create(check, content);
      else await checks.update(this.#checkRun, content);
    });
  }

  /** Queues a write: GitHub asks clients not to write concurrently. */
  #write(work: () => Promise<void>): Promise<boolean> {
    this.#writes = this.#writes.then(async () => {
      if (this.#isForbidden) return false;
      try {
        await work();
        return true;
      } catch (error) {
        this.#isForbidden = this.#checkRun === undefined && isForbidden(error);
        this.#progressAt = performance.now() + pauseMs;
        core.warning(describeRefusal(error));
        return false;
      }
    });
    return this.#writes;
  }
}

/** Whether GitHub refuses the token, and not only for now. */
export function isForbidden(error: unknown): boolean {
  const isLimit = errorMessage(error).includes("rate limit");
  return [401, 403, 404].includes(httpErrorStatus(error) ?? 0) && !isLimit;
}

function describeRefusal(error: unknown): string {
  const reason = errorMessage(error);
  if (!isForbidden(error) || httpErrorStatus(error) === 401) {
    return `GitHub did not take a check run (${reason}). The job's summary has the results.`;
  }
  // The first is said of a classic one, the other of a fine-grained one.
  if (/via a GitHub App|personal access token/.test(reason)) {
    return [
      `No check runs: GitHub takes them from no person (${reason}), but only from`,
      "the workflow's own token or a GitHub App's, as `github-token`.",
      "The job's summary has the results.",
    ].join(" ");
  }
  return [
    `No check runs: GitHub lets this workflow write none (${reason}).`,
    "Give the job `permissions: checks: write`;",
    "pull requests from forks have it only where the repository's settings allow it.",
    "The job's summary has the results.",
  ].join(" ");
}

/** As many as Octokit itself makes of other requests. */
export const maxTries = 4;

/** Writes check runs of the commit that the workflow runs for. */
export function createCheckRunWriter(
  github: GitHub,
  { repo, headSha }: Pick<WorkflowRun, "repo" | "headSha">,
): CheckRunWriter {
  return new CheckRunWriter(github, { repo, headSha, maxTries });
}
