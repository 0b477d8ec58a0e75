import * as core from "@actions/core";
import type { FailOn, JobChecks } from "../contract/action.ts";
import type { Annotation } from "../report/annotations.ts";
import { conclude, type Verdict } from "../report/conclude.ts";
import { isJobCheckWanted, maxJobChecks } from "../report/is-job-check-wanted.ts";
import { renderBatchCheck } from "../report/render-batch.ts";
import { type EndedRow, renderJobCheck } from "../report/render-job.ts";
import type { Report } from "../report/report.ts";
import type { CheckRuns } from "./check-runs.ts";
import { statusOf } from "./connect-github.ts";

const updateMs = 10_000;

interface ReporterOptions {
  readonly checks: CheckRuns;
  readonly checkName: string;
  /** Tells the check runs from those of other steps and attempts. */
  readonly externalId: string;
  readonly jobChecks: JobChecks;
  readonly failOn: FailOn;
}

/** Tells GitHub how a batch goes. What GitHub refuses is told once in the log, and the step goes on without it. */
export class Reporter {
  readonly #options: ReporterOptions;
  #checkRun: number | undefined;
  #isRefused = false;
  #isBroken = false;
  #jobChecks = 0;
  #updatedAt = 0;
  #shown = "";
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
  progress(report: Report): void {
    const { checks, failOn } = this.#options;
    const now = performance.now();
    if (now - this.#updatedAt < updateMs) return;
    this.#updatedAt = now;
    const output = renderBatchCheck(report, conclude(report, failOn));
    if (JSON.stringify(output) === this.#shown) return;
    this.#shown = JSON.stringify(output);
    void this.#write(async () => {
      if (!this.#isBroken && this.#checkRun !== undefined) await checks.update(this.#checkRun, { output });
    });
  }

  /** Gives the job a check run of its own, where it is to have one. */
  jobEnded(row: EndedRow, lastLines: readonly string[], jobCount: number): void {
    const { checks, checkName, externalId, failOn, jobChecks } = this.#options;
    if (!isJobCheckWanted(row, { jobChecks, jobCount }) || this.#jobChecks === maxJobChecks) return;
    this.#jobChecks++;
    void this.#write(async () => {
      if (this.#isBroken) return;
      const { conclusion } = conclude({ rows: [row] }, failOn);
      await checks.create(
        { name: `${checkName}: ${row.model} for ${row.target}`, externalId: `${externalId}/${row.id}` },
        { output: renderJobCheck(row, lastLines), ...(conclusion && { conclusion }) },
      );
    });
  }

  /** Gives whether the check run of the batch holds it all, annotations included. */
  async complete(report: Report, verdict: Verdict, annotations: readonly Annotation[]): Promise<boolean> {
    const { checks, checkName: name, externalId } = this.#options;
    // A batch that was broken off has no time for the check runs that are still to be written.
    this.#isBroken = report.broken !== undefined;
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
        this.#isRefused = (statusOf(error) ?? 500) < 500;
        core.warning(refusalText(error));
        return false;
      }
    });
    return this.#writes;
  }
}

function refusalText(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  const status = statusOf(error);
  return status === 403 || status === 404
    ? `No check runs: GitHub lets this workflow write none (${reason}). Give the job \`permissions: checks: write\`; for pull requests from forks and of Dependabot GitHub never does. The job's summary has the results.`
    : `GitHub did not take a check run (${reason}). The job's summary has the results.`;
}
