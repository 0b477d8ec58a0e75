import * as core from "@actions/core";
import type { FailOn, JobChecks } from "../contract/action.ts";
import type { Annotation } from "../report/build-annotations.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import { isJobCheckWanted, maxJobChecks } from "../report/is-job-check-wanted.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { type EndedRow, renderJobCheck } from "../report/render-job.ts";
import type { Report } from "../report/report.ts";
import type { CheckRunWriter } from "./check-run-writer.ts";
import { httpErrorStatus } from "./connect-github.ts";

const updateMs = 10_000;

interface ReporterOptions {
  readonly checks: CheckRunWriter;
  readonly checkName: string;
  /** Tells the check runs from those of other steps and attempts. */
  readonly externalId: string;
  readonly jobChecks: JobChecks;
  readonly failOn: FailOn;
}

/** Tells GitHub how a batch goes. What GitHub refuses is told once in the log, and the step goes on without it. */
export class CheckRunReporter {
  readonly #options: ReporterOptions;
  #checkRun: number | undefined;
  #isRefused = false;
  #isInterrupted = false;
  #jobCheckCount = 0;
  #updatedAt = 0;
  #lastOutput = "";
  #writes = Promise.resolve(true);

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  async begin(report: Report): Promise<void> {
    const { checks, checkName: name, externalId } = this.#options;
    await this.#write(async () => {
      const output = renderBatchCheck(report, { conclusion: null, title: "Preparing the batch" });
      this.#checkRun = await checks.create({ name, externalId }, { output });
      core.saveState("checkRun", String(this.#checkRun));
    });
  }

  /** Tells from time to time how far the batch is. */
  reportProgress(report: Report): void {
    const { checks, failOn } = this.#options;
    const now = performance.now();
    if (now - this.#updatedAt < updateMs) return;
    this.#updatedAt = now;
    const output = renderBatchCheck(report, conclude(report, failOn));
    if (JSON.stringify(output) === this.#lastOutput) return;
    this.#lastOutput = JSON.stringify(output);
    void this.#write(async () => {
      if (!this.#isInterrupted && this.#checkRun !== undefined)
        await checks.update(this.#checkRun, { output });
    });
  }

  /** Gives the job a check run of its own, where it is to have one. */
  reportJobEnd(row: EndedRow, lastLines: readonly string[], jobCount: number): void {
    const { checks, checkName, externalId, failOn, jobChecks } = this.#options;
    if (!isJobCheckWanted(row, { jobChecks, jobCount }) || this.#jobCheckCount === maxJobChecks)
      return;
    this.#jobCheckCount++;
    void this.#write(async () => {
      if (this.#isInterrupted) return;
      const { conclusion } = conclude({ rows: [row] }, failOn);
      await checks.create(
        {
          name: `${checkName}: ${row.model} for ${row.target}`,
          externalId: `${externalId}/${row.id}`,
        },
        { output: renderJobCheck(row, lastLines), ...(conclusion && { conclusion }) },
      );
    });
  }

  /** Gives whether the check run of the batch holds it all, annotations included. */
  async complete(
    report: Report,
    verdict: Verdict,
    annotations: readonly Annotation[],
  ): Promise<boolean> {
    const { checks, checkName: name, externalId } = this.#options;
    // A batch that was broken off has no time for the check runs that are still to be written.
    this.#isInterrupted = report.abortReason !== undefined;
    return this.#write(async () => {
      const output = renderBatchCheck(report, verdict);
      const content = { output, conclusion: verdict.conclusion ?? "neutral", annotations };
      if (this.#checkRun === undefined) await checks.create({ name, externalId }, content);
      else await checks.update(this.#checkRun, content);
    });
  }

  /** One write after the other; GitHub asks for it. */
  #write(work: () => Promise<void>): Promise<boolean> {
    this.#writes = this.#writes.then(async () => {
      if (this.#isRefused) return false;
      try {
        await work();
        return true;
      } catch (error) {
        this.#isRefused = (httpErrorStatus(error) ?? 500) < 500;
        core.warning(describeRefusal(error));
        return false;
      }
    });
    return this.#writes;
  }
}

function describeRefusal(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  const status = httpErrorStatus(error);
  return status === 403 || status === 404
    ? `No check runs: GitHub lets this workflow write none (${reason}). Give the job \`permissions: checks: write\`; for pull requests from forks and of Dependabot GitHub never does. The job's summary has the results.`
    : `GitHub did not take a check run (${reason}). The job's summary has the results.`;
}
