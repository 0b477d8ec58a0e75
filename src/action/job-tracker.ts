import type { Batch } from "../contract/batches/batch.ts";
import { hasFailedGate } from "../contract/jobs/gate.ts";
import type { Job } from "../contract/jobs/job.ts";
import { isTerminal, jobStatus } from "../contract/jobs/status.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { jobLinks, type ReportRow } from "../report/report.ts";
import type { StepJob } from "./submit-batches.ts";

/** The last known state of each of the step's jobs. */
export class JobTracker {
  readonly #rows = new Map<string, ReportRow>();

  constructor(jobs: readonly StepJob[], serviceUrl: string) {
    for (const { id, model, target, former } of jobs) {
      const links = jobLinks(serviceUrl, id);
      this.#rows.set(id, { id, model, target, status: "Pending", gatesFailed: false, ...links });
      if (former) this.recordJobs([former]);
    }
  }

  /** In the order of the step's jobs. */
  get rows(): readonly ReportRow[] {
    return [...this.#rows.values()];
  }

  recordBatches(batches: readonly Batch[]): void {
    for (const { id, status, gatesFailed } of batches.flatMap(({ jobs }) => jobs)) {
      const row = this.#rows.get(id);
      if (row && !row.job) this.#rows.set(id, { ...row, status, gatesFailed });
    }
  }

  /** Records jobs that have ended. */
  recordJobs(jobs: readonly Job[]): void {
    for (const job of jobs) {
      const row = this.#rows.get(job.id);
      if (!row) continue;
      const gatesFailed = hasFailedGate(job.gates);
      this.#rows.set(job.id, { ...row, status: job.status, gatesFailed, job });
    }
  }

  /** The progress of all jobs on one line. */
  statusLine(): string {
    const { rows } = this;
    const ended = rows.filter(({ status }) => isTerminal(status)).length;
    const byStatus = Map.groupBy(rows, ({ status }) => status);
    const counts = jobStatus.options.flatMap((status) => {
      const count = byStatus.get(status)?.length ?? 0;
      return count > 0 ? `${count} ${status}` : [];
    });
    const gatesFailed = rows.filter((row) => row.gatesFailed).length;
    const gates = gatesFailed > 0 ? `, ${gatesFailed} with gates that failed` : "";
    return `${ended} of ${formatCount(rows.length, "job")} ended: ${counts.join(", ")}${gates}`;
  }
}
