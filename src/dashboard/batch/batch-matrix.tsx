import { formatBytes } from "../../contract/text/format-bytes.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { describeRecipe } from "../shared/describe-recipe.ts";
import { Icon } from "../shared/button.tsx";
import { type BatchJob, describeCell, cellStyles, type MatrixView } from "./describe-cell.ts";

interface BatchMatrixProps {
  readonly jobs: readonly BatchJob[];
  readonly summaries: ReadonlyMap<string, JobSummary>;
  readonly view: MatrixView;
}

/** A row for each model and a column for each target. */
export function BatchMatrix({ jobs, summaries, view }: BatchMatrixProps) {
  const targets = [...new Set(jobs.map(({ target }) => target))];
  // The jobs come in the order of models × targets, and models may share a name.
  const rows = Array.from({ length: jobs.length / targets.length }, (_, row) =>
    jobs.slice(row * targets.length, (row + 1) * targets.length),
  );
  return (
    <div class="card wide matrix-card" tabIndex={0} role="region" aria-label="Models and targets">
      <table class="matrix" style={{ minWidth: `${240 + 160 * targets.length}px` }}>
        <caption class="sr">Models and targets, compared with the baseline</caption>
        <MatrixHead targets={targets} summaries={summaries} />
        <tbody>
          {rows.map((row) => (
            <MatrixRow key={row[0]?.id} row={row} summaries={summaries} view={view} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface MatrixHeadProps extends Pick<BatchMatrixProps, "summaries"> {
  readonly targets: readonly string[];
}

/** Targets have recipes of their own, which explain what differs between the columns. */
function MatrixHead({ targets, summaries }: MatrixHeadProps) {
  const byTarget = Map.groupBy(summaries.values(), ({ target }) => target);
  const nameRecipes = (target: string) =>
    [...new Set(byTarget.get(target)?.map(describeRecipe))].join("; ");
  return (
    <thead>
      <tr>
        <th>Model</th>
        {targets.map((target) => (
          <th key={target} class="two">
            {target}
            <small>{nameRecipes(target)}</small>
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface MatrixRowProps extends Omit<BatchMatrixProps, "jobs"> {
  readonly row: readonly BatchJob[];
}

function MatrixRow({ row, summaries, view }: MatrixRowProps) {
  const original = row.map(({ id }) => summaries.get(id)?.figures.originalBytes).find(Boolean);
  return (
    <tr>
      <th scope="row" class="two">
        {row[0]?.model}
        <small>{original && formatBytes(original)}</small>
      </th>
      {row.map((job) => (
        <MatrixCell key={job.id} job={job} summary={summaries.get(job.id)} view={view} />
      ))}
    </tr>
  );
}

interface MatrixCellProps extends Pick<BatchMatrixProps, "view"> {
  readonly job: BatchJob;
  readonly summary: JobSummary | undefined;
}

function MatrixCell({ job, summary, view }: MatrixCellProps) {
  const { look, title, detail } = describeCell(job, summary, view);
  const { icon, words } = cellStyles[look];
  const progress = look === "work" ? (summary?.progress.fraction ?? 0) : 0;
  return (
    <td class={`is-${look}`}>
      <a href={`/jobs/${job.id}`} title={detail}>
        <span class="sr">
          {job.model} for {job.target}: {words}.
        </span>
        <b>{title}</b>
        <small class={job.status === "Completed" ? undefined : "message"}>{detail}</small>
        <Icon name={icon} />
        {progress > 0 && <i class="matrix-done" style={{ width: `${100 * progress}%` }} />}
      </a>
    </td>
  );
}
