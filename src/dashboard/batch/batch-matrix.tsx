import type { Batch } from "../../contract/batch.ts";
import { formatBytes } from "../../contract/format-bytes.ts";
import type { JobSummary } from "../../contract/job-summary.ts";
import { isTerminal } from "../../contract/status.ts";
import { Icon, type IconName } from "../shared/icon.tsx";

type BatchJob = Batch["jobs"][number];

interface BatchMatrixProps {
  readonly batch: Batch;
  readonly jobs: ReadonlyMap<string, JobSummary>;
}

/** A row for each model and a column for each target. */
export function BatchMatrix({ batch, jobs }: BatchMatrixProps) {
  const targets = [...new Set(batch.jobs.map(({ target }) => target))];
  // The jobs come in the order of models × targets, and models may share a name.
  const rows = Array.from({ length: batch.jobs.length / targets.length }, (_, row) =>
    batch.jobs.slice(row * targets.length, (row + 1) * targets.length),
  );
  return (
    <div class="card wide matrix-card" tabIndex={0} role="region" aria-label="Models and targets">
      <table class="matrix">
        <MatrixHead targets={targets} />
        <tbody>
          {rows.map((row) => (
            <MatrixRow key={row[0]?.id} row={row} jobs={jobs} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function MatrixHead({ targets }: { readonly targets: readonly string[] }) {
  return (
    <thead>
      <tr>
        <th>Model</th>
        {targets.map((target) => (
          <th key={target}>{target}</th>
        ))}
      </tr>
    </thead>
  );
}

interface MatrixRowProps extends Pick<BatchMatrixProps, "jobs"> {
  readonly row: readonly BatchJob[];
}

function MatrixRow({ row, jobs }: MatrixRowProps) {
  const original = row.map(({ id }) => jobs.get(id)?.figures.originalBytes).find(Boolean);
  return (
    <tr>
      <th scope="row" class="two">
        {row[0]?.model}
        <small>{original && formatBytes(original)}</small>
      </th>
      {row.map((job) => (
        <MatrixCell key={job.id} job={job} summary={jobs.get(job.id)} />
      ))}
    </tr>
  );
}

interface MatrixCellProps {
  readonly job: BatchJob;
  readonly summary: JobSummary | undefined;
}

function MatrixCell({ job, summary }: MatrixCellProps) {
  const { look, icon } = lookAtJob(job);
  const bytes = summary?.figures.resultBytes;
  const isDone = job.status === "Completed";
  return (
    <td class={look}>
      <a href={`/jobs/${job.id}`} aria-label={`${job.model} for ${job.target}: ${job.status}`}>
        <b>{isDone && bytes ? formatBytes(bytes) : job.status}</b>
        <small>{isDone ? describeFigures(summary) : describeProgress(job, summary)}</small>
        <Icon name={icon} />
      </a>
    </td>
  );
}

interface CellLook {
  readonly look: string;
  readonly icon: IconName;
}

/** Good news is quiet; what needs a person has a colour and an edge. */
function lookAtJob({ status, gatesFailed }: BatchJob): CellLook {
  if (status === "Failed" || gatesFailed) return { look: "is-bad", icon: "bad" };
  if (status === "Completed") return { look: "", icon: "check" };
  if (status === "Cancelled") return { look: "is-off", icon: "stop" };
  return status === "Pending" ? { look: "", icon: "wait" } : { look: "is-work", icon: "work" };
}

function describeFigures(summary: JobSummary | undefined): string {
  const { sizeRatio, sqnrDb, latencyRatio } = summary?.figures ?? {};
  const parts = [
    sizeRatio && `${Math.round(100 * sizeRatio)} %`,
    sqnrDb && `${sqnrDb.toFixed(1)} dB`,
    latencyRatio && `×${latencyRatio.toFixed(2)}`,
  ];
  return parts.filter(Boolean).join(" · ");
}

function describeProgress({ status }: BatchJob, summary: JobSummary | undefined): string {
  if (isTerminal(status) || status === "Pending") return summary?.statusReason ?? "";
  const { fraction = 0, message = "" } = summary?.progress ?? {};
  return `${Math.floor(100 * fraction)} % ${message}`;
}
