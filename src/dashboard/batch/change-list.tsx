import { useSignal } from "@preact/signals";
import {
  type BatchJob,
  describeChange,
  listMissedGates,
  describeCell,
  type CellStyle,
  cellStyles,
} from "./describe-cell.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { describeRecipe } from "../shared/describe-recipe.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { jobAddress } from "../../contract/page-addresses.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { Button, Icon } from "../shared/button.tsx";
import { compareFigures } from "../shared/figures.ts";

const shownAtFirst = 8;

interface ChangeListProps {
  readonly jobs: readonly BatchJob[];
  readonly summaries: ReadonlyMap<string, JobSummary>;
}

/** The jobs that differ from their baselines or miss a gate. */
export function ChangeList({ jobs, summaries }: ChangeListProps) {
  const isWhole = useSignal(false);
  const changes = listBatchChanges(jobs, summaries);
  const shown = isWhole.value ? changes : changes.slice(0, shownAtFirst);
  return (
    <section class="card c7">
      <header>
        <h2>What changed</h2>
        {changes.length > 0 && <span class="dim">worst first</span>}
        <span class="grow" />
        {shown.length < changes.length && (
          <Button look="quiet" onClick={() => (isWhole.value = true)}>
            Show all {changes.length}
          </Button>
        )}
      </header>
      {changes.length === 0 && <p class="card-note">{sayNothingChanged(jobs)}</p>}
      <ul class="list">
        {shown.map((change) => (
          <ChangeRow key={change.job.id} change={change} />
        ))}
      </ul>
    </section>
  );
}

/** What an empty list says about jobs, some of which may not have ended. */
function sayNothingChanged(jobs: readonly BatchJob[]): string {
  const ended = jobs.filter(({ status }) => isTerminal(status)).length;
  if (ended === 0) return "No job has finished yet.";
  if (ended < jobs.length)
    return `Nothing so far: ${ended} of ${formatCount(jobs.length, "job")} finished.`;
  return "Nothing needs your attention.";
}

function ChangeRow({
  change: { job, look, detail, recipe, isCompared },
}: {
  readonly change: ListedChange;
}) {
  const { icon, words } = cellStyles[look];
  const name = `${job.model} for ${job.target}`;
  return (
    <li class={`is-${look}`}>
      <span class="look-sign" title={words}>
        <Icon name={icon} />
        <span class="sr">{words}</span>
      </span>
      <span class="two grow">
        <span>
          <a href={jobAddress(job.id)}>{name}</a> <span class="dim">{recipe}</span>
        </span>
        <small class="cut-anywhere">{detail}</small>
      </span>
      {isCompared && (
        <a class="more" href={jobAddress(job.id, "baseline")} aria-label={`Compare ${name}`}>
          Compare
        </a>
      )}
    </li>
  );
}

interface ListedChange {
  readonly job: BatchJob;
  readonly look: CellStyle;
  readonly detail: string;
  readonly recipe: string;
  readonly isCompared: boolean;
  readonly severity: number;
}

/** Looks that are listed, the worst first. */
const listed: readonly CellStyle[] = ["bad", "warn", "worse", "better"];

/** Jobs that failed, miss a gate or differ from their baselines beyond noise, the worst first. */
function listBatchChanges(
  jobs: readonly BatchJob[],
  summaries: ReadonlyMap<string, JobSummary>,
): ListedChange[] {
  const changes = jobs.flatMap((job) => {
    const { look, detail } = describeCell(job, summaries.get(job.id), "summary");
    const summary = summaries.get(job.id);
    if (!listed.includes(look) || summary === undefined) return [];
    return [{ job, look, ...describeJob(summary, detail) }];
  });
  return changes.toSorted(
    (a, b) => listed.indexOf(a.look) - listed.indexOf(b.look) || b.severity - a.severity,
  );
}

function describeJob(summary: JobSummary, detail: string) {
  const differing = compareFigures(summary).filter(({ judgement }) => judgement !== "same");
  const changes = differing.map((each) => {
    return `${describeChange(each)}, ${each.before} → ${each.now}`;
  });
  const texts = [...listMissedGates(summary), ...changes];
  return {
    detail: texts.length === 0 ? detail : texts.join(" · "),
    recipe: describeRecipe(summary),
    isCompared: summary.baseline !== null,
    severity: Math.max(0, ...differing.map(({ severity }) => Math.abs(severity))),
  };
}
